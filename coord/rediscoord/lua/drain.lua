-- drain: core.DecideDrain. in: {from, seen, target, reason, newident, lost, hold, fall, pin}; out: the authority.
local d, now = cjson.decode(ARGV[1]), clock()
local a = authority()
if a.epoch ~= d.from then return stale('drain from ' .. int(d.from) .. ", today's epoch is " .. int(a.epoch)) end
local s = server(a)
if not d.newident and not same_server(a, s) then return stale('redis is another') end
local highest = math.max(a.epoch, d.seen)
for _, member in ipairs(redis.call('SMEMBERS', P .. 'sessions')) do
  local row = session(member)
  if row then highest = math.max(highest, row.acked) end
end
a.epoch = highest + 1
local moved = a.system ~= s.system
-- A restarted Redis may have lost writes, so a new identity always counts as loss here.
if d.lost or d.newident then
  a.epoch = a.epoch + 1000 + math.floor(math.max(now - a.changed, 0) / 1000)
  a.hold = math.max(a.hold, now + d.hold)
  if d.newident and moved then a.hold = now + d.hold end
end
a.mode, a.target, a.run, a.repl, a.stamp = 'drain', d.target, '', '', 0
a.changed, a.reason = now, d.reason
if d.newident then a.system, a.start = s.system, s.start end
if d.fall then
  if now - a.fell > 7200000000 then a.falls = 0 end
  a.falls, a.fell = a.falls + 1, now
end
if d.pin == 'db' then a.pin = 'db' elseif d.pin == 'redis' then a.pin = '' end
set_authority(a)
return {'ok', tell(a, s, now)}
