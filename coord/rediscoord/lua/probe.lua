-- probe: who answers, its clock, the last seed, and what decides whether it may be used.
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication') .. redis.call('INFO', 'memory')
local function get(name) return string.match(info, '[\r\n]' .. name .. ':([^\r\n]*)') or '' end
local stamp = redis.call('HGET', P .. 'guard', 'stamp') or '0'
return {'ok', get('run_id'), get('master_replid'), stamp, int(clock()), get('redis_version'), get('redis_mode'), get('role'), get('maxmemory_policy')}
