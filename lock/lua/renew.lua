-- KEYS: lock. ARGV: value, places, ttl ms.
-- Returns 1 renewed, 0 not held.
if not holds(ARGV[1], ARGV[2]) then return 0 end
if ARGV[2] == '1' then
  redis.call('PEXPIRE', k, ARGV[3])
else
  -- A server at maxmemory refuses ZADD, but lets a script finish that has written before.
  redis.call('ZREMRANGEBYSCORE', k, '-inf', clock())
  put(ARGV[1], ARGV[2], ARGV[3])
end
return 1
