-- KEYS: entry. ARGV: token, lease ms, keep ms, stub, force 0|1|2, seen generations, mine, awaited token, nowait, want old value.
-- Returns {verdict, server ms, bytes}: 1 grant (old value or header), 2 value, 3 wait (header), 4 failed (entry), 5 bypass.
local tok, lease, keepms, force = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5]
local now, h = clock(), header()

local function among(list, t)
  for i = 1, #list, 16 do
    if string.sub(list, i, i + 15) == t then return true end
  end
  return false
end

if not h then
  redis.call('SET', k, string.sub(ARGV[4], 1, 42) .. ms(now + lease) .. string.sub(ARGV[4], 49), 'PX', keepms)
  return {1, now, ''}
end

local state, flags = string.byte(h, 4), string.byte(h, 5)
local gen, held, till = string.sub(h, 11, 26), string.sub(h, 27, 42), num(h, 43)
local marked, failed = math.floor(flags / 2) % 2 == 1, math.floor(flags / 4) % 2 == 1
local servable = state <= 2 and now < num(h, 61)

if servable and not marked and now < num(h, 55) and (force == '0' or (force == '2' and not among(ARGV[6], gen))) then
  return {2, now, redis.call('GET', k)}
end

local ours = held == tok or (held ~= NONE and among(ARGV[7], held))
if not ours then
  if held ~= NONE and now < till and till <= now + 60000 then
    if ARGV[9] == '0' and flags % 2 == 0 then redis.pcall('SETRANGE', k, 4, string.char(flags + 1)) end
    return {3, now, h}
  end
  if state == 4 and held == NONE and (now < till or gen == ARGV[8]) then return {4, now, redis.call('GET', k)} end
  if state <= 2 and failed and held == NONE and now < till then return {4, now, h} end
  if state == 5 then return {5, now, h} end
end

local before = h
if servable and state == 1 and ARGV[10] == '1' then before = redis.call('GET', k) end
redis.call('SETRANGE', k, 26, tok .. ms(now + lease))
keep(keepms)
return {1, now, before}
