-- KEYS: entry. ARGV: channel.
-- Returns how many entries were deleted.
local n = redis.call('DEL', k)
publish(ARGV[1], 'I', NONE)
return n
