-- KEYS: lock, fence. ARGV: value, places.
-- Returns the fence, 0 if the lock is not held.
if not holds(ARGV[1], ARGV[2]) then return 0 end
return fence(KEYS[2])
