-- KEYS: lock, waiters, fence, marker or nothing. ARGV: value, places, ttl ms, process, age ms or -1, next waiter's age ms or -1,
-- want a fence 0|1, then values of earlier attempts.
-- Returns {1 granted, places left, fence or 0} | {0 held, ms until a place may be free, 0} | {2 the marker is there, 0, 0}.
local v, places, ttl, waiters, process = ARGV[1], ARGV[2], ARGV[3], KEYS[2], ARGV[4]
if KEYS[4] and redis.call('EXISTS', KEYS[4]) == 1 then return {2, 0, 0} end

local now, left, wait = clock(), 0, nil
if places == '1' then
  local held = redis.call('GET', k)
  local ours = not held or held == 'r' .. process
  for i = 8, #ARGV do ours = ours or held == ARGV[i] end
  if not ours then wait = redis.call('PTTL', k) end
else
  redis.call('ZREMRANGEBYSCORE', k, '-inf', now)
  redis.call('ZREM', k, 'r' .. process)
  for i = 8, #ARGV do redis.call('ZREM', k, ARGV[i]) end
  left = tonumber(places) - redis.call('ZCARD', k) - 1
  if left < 0 then wait = redis.call('ZRANGE', k, 0, 0, 'WITHSCORES')[2] - now end
end

local age = ARGV[6]
if wait then age = ARGV[5] end
if age ~= '-1' then
  redis.call('ZADD', waiters, now - age, process)
  redis.call('PEXPIRE', waiters, 10000)
elseif not wait then
  redis.call('ZREM', waiters, process)
end
if wait then return {0, wait, 0} end
put(v, places, ttl)
if ARGV[7] == '1' then return {1, left, fence(KEYS[3])} end
return {1, left, 0}
