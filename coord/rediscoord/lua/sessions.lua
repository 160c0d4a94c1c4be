-- sessions: all of them for people: member, state, seq, acked, health, role, machine, lock, age, facts, slots.
local now, out = clock(), {}
for _, member in ipairs(redis.call('SMEMBERS', P .. 'sessions')) do
  local r = redis.call('HMGET', P .. 'session:' .. member, 'state', 'seq', 'acked', 'health', 'role', 'machine', 'lock', 'beat', 'facts')
  if r[1] then
    local slots = redis.call('HLEN', S .. 'm:' .. member)
    for _, v in ipairs({member, r[1], r[2], r[3], r[4], r[5], r[6], r[7], int(now - tonumber(r[8])), r[9], int(slots)}) do out[#out + 1] = v end
  end
end
return {'ok', out}
