-- KEYS: entry. ARGV: token, lease ms, keep ms, stub.
-- Returns server ms * 4 + 1.
local now, h = clock(), header()
local till = ms(now + ARGV[2])
if h and string.byte(h, 4) <= 2 and now < num(h, 61) then
  redis.call('SETRANGE', k, 26, ARGV[1] .. till)
  keep(tonumber(ARGV[3]))
else
  local flags = h and string.byte(h, 5) % 2 or 0
  local s = ARGV[4]
  redis.call('SET', k, string.sub(s, 1, 4) .. string.char(flags) .. string.sub(s, 6, 42) .. till .. string.sub(s, 49), 'PX', ARGV[3])
end
return now * 4 + 1
