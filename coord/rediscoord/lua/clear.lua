-- clear: opens a gate and begins its next generation. in: key; out: the gate and the time.
local key, now, out = ARGV[1], clock(), {}
local g = {gen = gate(key).gen + 1, at = 0, changed = now, reason = ''}
set_gate(key, g)
list_gate(out, key, g)
return {'ok', out, int(now)}
