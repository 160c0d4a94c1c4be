-- reap: frees what ended sessions had. in: {view, live: {member: true}, before}; out: how many slots.
local q, now = cjson.decode(ARGV[1]), clock()
local bad = check('', q.view, now)
if bad then return bad end
local live, freed = {}, 0
for _, m in ipairs(q.live) do live[m] = true end
for _, member in ipairs(redis.call('SMEMBERS', S .. 'members')) do
  local incarnation = tonumber(string.match(member, '/(%d+)$'))
  if incarnation < q.before and not live[member] then freed = freed + remove_member(member) end
end
return {'ok', int(freed)}
