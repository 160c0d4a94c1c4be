-- seed: starts an epoch with the carried slots and stamps the guard. in: {epoch, slots: [[key, n, member, token, cap]], old: the
-- space's root}. out: run_id, replid, stamp; or stale and the guard.
local q, now = cjson.decode(ARGV[1]), clock()
local g = redis.call('HMGET', P .. 'guard', 'epoch', 'stamp')
local guard, last = tonumber(g[1] or 0), tonumber(g[2] or 0)
if guard >= q.epoch then return {'stale', 'guard is at ' .. int(guard), int(guard)} end
local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([^\r\n]*)')
if policy ~= 'noeviction' then return {'unavailable', 'maxmemory-policy is ' .. tostring(policy)} end
local run, repl = identity()

if guard > 0 then
  local new = S
  S = P .. 'e' .. int(guard) .. ':'
  for _, member in ipairs(redis.call('SMEMBERS', S .. 'members')) do remove_member(member) end
  S = new
end
for _, member in ipairs(redis.call('SMEMBERS', S .. 'members')) do remove_member(member) end
for _, s in ipairs(q.slots) do put_slot(s[1], s[2], s[3], s[4], q.epoch, s[5]) end
local stamp = math.max(last + 1, now)
redis.call('HSET', P .. 'guard', 'epoch', int(q.epoch), 'stamp', int(stamp))
return {'ok', run, repl, int(stamp)}
