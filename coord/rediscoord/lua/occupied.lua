-- occupied: the recorded slots of a key, of all when it is empty.
if ARGV[1] == '' then return {'ok', all_slots()} end
local out = {}
list_slots(out, ARGV[1], slots_of(ARGV[1]))
return {'ok', out}
