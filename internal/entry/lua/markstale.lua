-- KEYS: entry. ARGV: new generation, channel.
-- Returns server ms * 4 + (0 nothing to mark: deleted, 1 marked).
local now, h, marked = clock(), header(), 0
if h and string.byte(h, 4) == 1 and now < num(h, 61) then
  local wrote = redis.pcall('SETRANGE', k, 10, ARGV[1] .. NONE .. ms(0))
  if type(wrote) == 'number' then
    redis.call('SETRANGE', k, 4, string.char(math.floor(string.byte(h, 5) / 8) * 8 + 2))
    shorten(num(h, 61) - now)
    marked = 1
  end
end
if marked == 0 then redis.call('DEL', k) end
publish(ARGV[2], 'M', ARGV[1])
return now * 4 + marked
