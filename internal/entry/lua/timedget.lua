-- KEYS: entry.
-- Returns {server seconds, microseconds, entry or false}.
local t = redis.call('TIME')
return {tonumber(t[1]), tonumber(t[2]), redis.call('GET', k)}
