-- take: core.DecideTake. in: {member, view, key, interval, burst, bound}; out: the wait.
local t, now = cjson.decode(ARGV[1]), clock()
local bad = check(t.member, t.view, now)
if bad then return bad end
if t.bound > 0 and now > t.bound then
  if now > t.bound + 1000000 then return stale('the call came late, or the clock stepped by ' .. int(now - t.bound) .. ' us') end
  now = t.bound
end
local span, key = t.interval * t.burst, S .. 'r:' .. t.key
local epoch, tat = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
if tonumber(epoch or -1) == t.view.epoch then tat = tonumber(tat) else tat = now + span end
local base = math.max(tat, now)
local wait = base + t.interval - span - now
if wait <= 0 then tat, wait = base + t.interval, 0 end
-- A bucket that was full for a day may be forgotten: a missing one is empty.
local keep = math.max(math.ceil((tat - now) / 1000), 0) + 86400000
redis.call('SET', key, int(t.view.epoch) .. ' ' .. int(tat), 'PX', int(keep))
return {'ok', int(wait)}
