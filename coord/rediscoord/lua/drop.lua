-- drop: ends an acquisition. in: {member, name, token}
local h = cjson.decode(ARGV[1])
local key = P .. 'lease:' .. h.name
local r = redis.call('HMGET', key, 'member', 'token')
if r[1] == h.member and tonumber(r[2]) == h.token then redis.call('HSET', key, 'free', '1') end
return {'ok'}
