-- KEYS: lock, waiters. ARGV: process, channel prefix, everyone 0|1, places.
-- Returns 1 if the process had been named, and another one was instead or nobody, 0 if not.
redis.call('ZREM', KEYS[2], ARGV[1])
local v = 'r' .. ARGV[1]
if not holds(v, ARGV[4]) then return 0 end
hand(v, ARGV[4], KEYS[2], ARGV[2], ARGV[3])
return 1
