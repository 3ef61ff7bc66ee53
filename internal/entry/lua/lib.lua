-- What scripts share: the header's layout (header.go), the clock, the wake-up message.
-- A script gets the definitions it names, which end at blank lines.
local k = KEYS[1]

local NONE = string.rep('\0', 16)

local function num(s, i)
  local a, b, c, d, e, f = string.byte(s, i, i + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function ms(n)
  local hi = math.floor(n / 16777216)
  local lo = n - hi * 16777216
  return string.char(math.floor(hi / 65536), math.floor(hi / 256) % 256, hi % 256,
    math.floor(lo / 65536), math.floor(lo / 256) % 256, lo % 256)
end

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function header()
  local h = redis.call('GETRANGE', k, 0, 69)
  if #h < 70 or string.sub(h, 1, 3) ~= '\245P\1' then return nil end
  local state = string.byte(h, 4)
  if state < 1 or state > 5 then return nil end
  return h
end

-- Pub/Sub may be refused by ACL: polls serve then.
local function publish(channel, kind, tok, text)
  redis.pcall('PUBLISH', channel, kind .. tok .. string.sub(ms(#k), 3) .. k .. (text or ''))
end

local function keep(ms)
  if redis.call('PTTL', k) < ms then redis.call('PEXPIRE', k, ms) end
end

local function shorten(ms)
  redis.call('PEXPIRE', k, math.max(ms, 1))
end
