-- open: ends a drain whose barrier is passed. in: {epoch, mode, run, repl, stamp}; out: the authority.
local o, now = cjson.decode(ARGV[1]), clock()
local a = authority()
local s = server(a)
local bad = barrier(a, s, o.epoch, now)
if bad then return bad end
a.mode, a.target, a.run, a.repl, a.stamp, a.changed, a.hold = o.mode, '', o.run, o.repl, o.stamp, now, 0
set_authority(a)
if o.mode == 'redis' then
  for _, member in ipairs(redis.call('SMEMBERS', S .. 'members')) do
    for _, own in ipairs(own_slots(member)) do remove_slot(member, own.token) end
  end
end
return {'ok', tell(a, s, now)}
