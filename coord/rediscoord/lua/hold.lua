-- hold: core.CheckHold and core.DecideHold. in: {member, view, name, token, ttl}; out: fence epoch, fence number, what is left.
local h, now = cjson.decode(ARGV[1]), clock()
local a, own = authority(), session(h.member)
if not own or own.state ~= 'live' then return {'fenced', h.member .. ' is not live'} end
if not same_server(a, server(a)) then return stale('redis is another') end
if now >= h.view.till then return ended(now, h.view.till) end
local key = P .. 'lease:' .. h.name
local r = redis.call('HMGET', key, 'member', 'token', 'epoch', 'number', 'till', 'free')
local row = {member = r[1] or '', token = tonumber(r[2] or 0), epoch = tonumber(r[3] or 0), number = tonumber(r[4] or 0), till = tonumber(r[5] or 0)}
local holder = row.member ~= '' and session(row.member)
local held = holder and holder.state == 'live' and r[6] ~= '1' and now < row.till
local mine = row.member == h.member
if mine and (h.token < row.token or h.token == row.token and not held) then return {'lost', h.name} end
if mine and h.token == row.token then
  redis.call('HSET', key, 'till', int(now + h.ttl))
  return {'ok', int(row.epoch), int(row.number), int(h.ttl)}
end
if held and not mine then return {'held', h.name .. ' is held by ' .. row.member} end
if now < a.hold then return {'waiting', 'commits were lost'} end
row.epoch, row.number = math.max(row.epoch, a.epoch), math.max(row.number + 1, now)
redis.call('HSET', key, 'member', h.member, 'token', int(h.token), 'epoch', int(row.epoch), 'number', int(row.number), 'till', int(now + h.ttl), 'free', '0')
return {'ok', int(row.epoch), int(row.number), int(h.ttl)}
