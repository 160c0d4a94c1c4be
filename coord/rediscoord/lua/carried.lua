-- carried: the slots to seed, once the barrier is passed. in: epoch
local a = authority()
local bad = barrier(a, server(a), tonumber(ARGV[1]), clock())
if bad then return bad end
return {'ok', all_slots()}
