-- end: marks a live session and frees what it has. in: {member, state, any: whatever its beat, seq}; out: its state.
local q, now = cjson.decode(ARGV[1]), clock()
local row = session(q.member)
if not row then return {'ok', ''} end
if row.state ~= 'live' or (not q.any and row.seq ~= q.seq) then return {'ok', row.state} end
redis.call('HSET', P .. 'session:' .. q.member, 'state', q.state, 'ended', int(now))
remove_member(q.member)
return {'ok', q.state}
