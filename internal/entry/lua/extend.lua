-- KEYS: entry. ARGV: token, lease ms, keep ms.
-- Returns server ms * 4 + (0 lost, 1 held, 2 held and others wait).
local now, h = clock(), header()
if not h or string.sub(h, 27, 42) ~= ARGV[1] then return now * 4 end
redis.call('SETRANGE', k, 42, ms(now + ARGV[2]))
keep(tonumber(ARGV[3]))
return now * 4 + 1 + string.byte(h, 5) % 2
