-- KEYS: entry. ARGV: token, bypass entry or '', bypass ms, channel.
-- Returns server ms * 4 + (0 not held, 1 released).
local tok, now, h = ARGV[1], clock(), header()
if not h or string.sub(h, 27, 42) ~= tok then return now * 4 end
local state, flags, hard = string.byte(h, 4), string.byte(h, 5), num(h, 61)
if ARGV[2] ~= '' then
  local wrote = redis.pcall('SET', k, ARGV[2], 'PX', ARGV[3])
  if wrote.err then redis.call('DEL', k) end
elseif state == 4 or (state <= 2 and now < hard) then
  local wrote = redis.pcall('SETRANGE', k, 26, NONE .. ms(0))
  if type(wrote) == 'number' then
    if flags % 2 == 1 then redis.call('SETRANGE', k, 4, string.char(flags - 1)) end
    if state <= 2 then shorten(hard - now) else shorten(10000) end
  end
else
  redis.call('DEL', k)
end
if flags % 2 == 1 then publish(ARGV[4], 'R', tok) end
return now * 4 + 1
