-- What scripts share. A script gets the definitions it names, which end at blank lines.
-- A lock with one place is a string, the holder's value; with several, a sorted set of values by their ends.
local k = KEYS[1]

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function fence(counter)
  local t = redis.call('TIME')
  local n = math.max((tonumber(redis.call('GET', counter) or 0)) + 1, t[1] * 1000000 + t[2])
  redis.call('SET', counter, string.format('%.0f', n), 'PX', 86400000)
  return n
end

local function holds(v, places)
  if places == '1' then return redis.call('GET', k) == v end
  local till = redis.call('ZSCORE', k, v)
  return till and tonumber(till) > clock()
end

local function put(v, places, ms)
  if places == '1' then return redis.call('SET', k, v, 'PX', ms) end
  redis.call('ZADD', k, clock() + ms, v)
  if redis.call('PTTL', k) < tonumber(ms) then redis.call('PEXPIRE', k, ms) end
end

local function remove(v, places)
  if places == '1' then redis.call('DEL', k) else redis.call('ZREM', k, v) end
end

-- The process that has waited longest, of those that listen. A cluster's nodes do not know who listens at others.
local function successor(waiters, channel, everyone)
  local first = redis.call('ZPOPMIN', waiters)[1]
  while first do
    local n = #k
    local size = string.char(math.floor(n / 16777216), math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256)
    local heard = redis.pcall('PUBLISH', channel .. first, 'N' .. string.rep('\0', 16) .. size .. k)
    if everyone == '1' or heard ~= 0 then return first end
    first = redis.call('ZPOPMIN', waiters)[1]
  end
end

local function hand(v, places, waiters, channel, everyone)
  local first = successor(waiters, channel, everyone)
  if places ~= '1' or not first then remove(v, places) end
  if first then put('r' .. first, places, 100) end
end
