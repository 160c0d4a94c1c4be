-- beat: core.DB.Beat. in: {member, seq, ack: {epoch, slots: [[key, n, token, cap]]}, gates: [gate], since}, health, facts
-- out: the authority; acked; the beat before; sessions (member, state, seq, acked, health); gates.
local b, now = cjson.decode(ARGV[1]), clock()
local row = session(b.member)
if not row then return {'fenced', 'session has no row'} end
if row.state ~= 'live' then return {'fenced', 'session is ' .. row.state} end
if row.seq >= b.seq then return {'fenced', 'beat ' .. int(b.seq) .. ' after beat ' .. int(row.seq) .. ' of the same session'} end
local a = authority()
redis.call('HSET', P .. 'session:' .. b.member, 'seq', int(b.seq), 'beat', int(now), 'health', ARGV[2], 'facts', ARGV[3])
if b.ack and b.ack.epoch == a.epoch and row.acked < b.ack.epoch then
  for _, s in ipairs(own_slots(b.member)) do remove_slot(b.member, s.token) end
  for _, s in ipairs(b.ack.slots) do
    local key, n = s[1], s[2]
    while redis.call('HEXISTS', S .. 's:' .. key, int(n)) == 1 do n = n + 1 end -- no token is left out
    put_slot(key, n, b.member, s[3], b.ack.epoch, s[4])
  end
  redis.call('HSET', P .. 'session:' .. b.member, 'acked', int(b.ack.epoch))
  row.acked = b.ack.epoch
end
for _, w in ipairs(b.gates) do pause(w, now) end
local sessions, gates = {}, {}
for _, member in ipairs(redis.call('SMEMBERS', P .. 'sessions')) do
  local r = redis.call('HMGET', P .. 'session:' .. member, 'state', 'seq', 'acked', 'health', 'ended')
  if r[1] and (r[1] == 'live' or now - tonumber(r[5]) < 600000000) then
    for _, v in ipairs({member, r[1], r[2], r[3], r[4]}) do sessions[#sessions + 1] = v end
  end
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'changed', int(math.max(b.since - 10000000, 0)), '+inf')) do list_gate(gates, key, gate(key)) end
return {'ok', tell(a, server(a), now), int(row.acked), int(row.seq), sessions, gates}
