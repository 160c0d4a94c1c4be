-- pause: lengthens a gate. in: {key, length, gen, reason}; out: the gate and the time.
local w, now, out = cjson.decode(ARGV[1]), clock(), {}
list_gate(out, w.key, pause(w, now))
return {'ok', out, int(now)}
