-- KEYS: entry. ARGV: token, entry, fresh ms, hard ms, grace ms, channel, ms of the entry's times.
-- Returns server ms * 4 + (0 lost, 1 stored, 2 already).
local tok, now, h = ARGV[1], clock(), header()
if not h then return now * 4 end
if string.sub(h, 27, 42) ~= tok then
  if string.byte(h, 4) <= 2 and string.sub(h, 11, 26) == tok then return now * 4 + 2 end
  return now * 4
end
if now > num(h, 43) + ARGV[5] then return now * 4 end
redis.call('SET', k, ARGV[2], 'PX', ARGV[4])
if now - ARGV[7] ~= 0 then
  redis.call('SETRANGE', k, 48, ms(now) .. ms(now + ARGV[3]) .. ms(now + ARGV[4]))
end
local flags = string.byte(h, 5)
if flags % 2 == 1 or math.floor(flags / 16) % 2 == 1 then publish(ARGV[6], 'S', tok) end
return now * 4 + 1
