-- Shared by all scripts: the header's layout (header.go), the clock, the wake-up message.
local k = KEYS[1]
local NONE = string.rep('\0', 16)

local function num(s, i)
  local a, b, c, d, e, f = string.byte(s, i, i + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function be(n, bytes)
  local s = ''
  for _ = 1, bytes do
    s = string.char(n % 256) .. s
    n = math.floor(n / 256)
  end
  return s
end

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function header()
  local h = redis.call('GETRANGE', k, 0, 69)
  if #h < 70 or string.sub(h, 1, 3) ~= '\245P\1' then return nil end
  return h
end

local function publish(channel, kind, tok, text)
  redis.call('PUBLISH', channel, kind .. tok .. be(#k, 4) .. k .. (text or ''))
end

local function keep(ms)
  if redis.call('PTTL', k) < ms then redis.call('PEXPIRE', k, ms) end
end

local function shorten(ms)
  redis.call('PEXPIRE', k, math.max(ms, 1))
end
