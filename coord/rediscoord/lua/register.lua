-- register: adds a session. in: {node, role, machine, lock, life}, facts; out: incarnation, then the authority.
local r, now = cjson.decode(ARGV[1]), clock()
local last = 0
for _, member in ipairs(redis.call('SMEMBERS', P .. 'sessions')) do
  local row = redis.call('HMGET', P .. 'session:' .. member, 'state', 'role', 'ended')
  local node, incarnation = string.match(member, '^(.*)/(%d+)$')
  if node == r.node then
    last = math.max(last, tonumber(incarnation))
    if row[1] == 'live' and row[2] == 'node' and r.role == 'node' then return {'busy', member .. ' is live'} end
  end
  if row[1] ~= 'live' and now - tonumber(row[3] or 0) > 3600000000 then
    redis.call('SREM', P .. 'sessions', member)
    redis.call('DEL', P .. 'session:' .. member)
  end
end
local a = authority()
if a.epoch == 0 then
  a.epoch, a.mode, a.changed, a.reason, a.life = 1, 'db', now, 'first start', r.life
  local s = server(a)
  a.system, a.start = s.system, s.start
  set_authority(a)
end
-- Gates that have been open for a day say nothing any more.
for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'changed', '-inf', int(now - 86400000000), 'LIMIT', 0, 1000)) do
  if gate(key).at < now - 86400000000 then
    redis.call('HDEL', P .. 'gate', key)
    redis.call('ZREM', P .. 'changed', key)
    redis.call('ZREM', P .. 'closed', key)
  end
end
local incarnation = math.max(last + 1, now)
local member = r.node .. '/' .. int(incarnation)
redis.call('SADD', P .. 'sessions', member)
redis.call('HSET', P .. 'session:' .. member, 'state', 'live', 'role', r.role, 'machine', r.machine, 'lock', r.lock, 'seq', '0', 'beat', int(now),
  'ended', '0', 'acked', int(a.epoch), 'health', '{}', 'facts', ARGV[2])
return {'ok', int(incarnation), tell(a, server(a), now)}
