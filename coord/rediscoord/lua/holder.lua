-- holder: who has a lease. in: name; out: nothing, or member, token, fence epoch, fence number, what is left.
local now = clock()
local r = redis.call('HMGET', P .. 'lease:' .. ARGV[1], 'member', 'token', 'epoch', 'number', 'till', 'free')
if not r[1] or r[6] == '1' or tonumber(r[5]) <= now then return {'ok'} end
local row = session(r[1])
if not row or row.state ~= 'live' then return {'ok'} end
return {'ok', r[1], r[2], r[3], r[4], int(tonumber(r[5]) - now)}
