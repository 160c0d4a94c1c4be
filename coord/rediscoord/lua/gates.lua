-- gates: the closed ones, and the time.
local now, out = clock(), {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'closed', '(' .. int(now), '+inf')) do list_gate(out, key, gate(key)) end
return {'ok', out, int(now)}
