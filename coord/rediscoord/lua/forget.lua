-- forget: frees what an ended member has in the epoch seeded last. in: member; out: how many slots.
local guard = redis.call('HGET', P .. 'guard', 'epoch')
if not guard then return {'ok', '0'} end
S = P .. 'e' .. guard .. ':'
return {'ok', int(remove_member(ARGV[1]))}
