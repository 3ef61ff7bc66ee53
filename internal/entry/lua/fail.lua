-- KEYS: entry. ARGV: token, failed header, failure, cool-down ms, linger ms, channel.
-- Returns {0 lost | 1 failed | 2 failed, value kept, server ms, header before}.
local tok, now, h = ARGV[1], clock(), header()
if not h or string.sub(h, 27, 42) ~= tok then return {0, now, h or ''} end
local state, flags, hard = string.byte(h, 4), string.byte(h, 5), num(h, 61)
local cool, linger = now + ARGV[4], ARGV[4] + ARGV[5]
local verdict = 1
if state <= 2 and now < hard then
  verdict = 2
  flags = flags - flags % 2
  if math.floor(flags / 4) % 2 == 0 then flags = flags + 4 end
  local wrote = redis.pcall('SETRANGE', k, 26, NONE .. ms(cool))
  if type(wrote) == 'number' then
    redis.call('SETRANGE', k, 4, string.char(flags) .. string.sub(ARGV[2], 6, 6))
    shorten(math.max(hard - now, linger))
  end
else
  local e = string.sub(ARGV[2], 1, 42) .. ms(cool) .. string.sub(ARGV[2], 49) .. ARGV[3]
  local wrote = redis.pcall('SET', k, e, 'PX', linger)
  if wrote.err then redis.call('DEL', k) end
end
publish(ARGV[6], string.sub(ARGV[3], 1, 1), tok, string.sub(ARGV[3], 2))
return {verdict, now, h}
