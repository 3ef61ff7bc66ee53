-- KEYS: lock, waiters, marker or nothing. ARGV: value, channel prefix, everyone 0|1, places, rest ms, marker ms.
-- Returns 1 released, 0 not held.
local v, places = ARGV[1], ARGV[4]
if not holds(v, places) then return 0 end
if ARGV[5] == '0' then
  hand(v, places, KEYS[2], ARGV[2], ARGV[3])
else
  remove(v, places)
  put('m' .. string.sub(v, 2), places, ARGV[5])
end
-- Last: a server at maxmemory refuses SET and ZADD, but lets a script finish that has written before.
if KEYS[3] then redis.call('SET', KEYS[3], '1', 'PX', ARGV[6]) end
return 1
