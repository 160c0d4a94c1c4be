-- Every script begins with this. KEYS[1] is the root of all keys, KEYS[2] the space of the slots (keys.go).
-- An answer is {'ok', ...}, or a word for a sentinel of package coord and a text.
-- Times are microseconds. Numbers stay below 2^53; int() writes them, because Lua's own form has 14 digits only.
local P, S = KEYS[1], KEYS[2]

local function int(x) return string.format('%.0f', x) end

local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- Who answers. A connection survives demotion and promotion, so this is read in every script that grants.
local function identity()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local repl = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  return run or '', repl or ''
end

local function stale(text) return {'stale', text} end
local function ended(now, till) return {'noview', 'view ended ' .. int(now - till) .. ' us ago'} end

-- Slots. S s:KEY is a hash of number to "member token epoch cap", S m:MEMBER one of token to "number key".
local function slots_of(key)
  local raw, out = redis.call('HGETALL', S .. 's:' .. key), {}
  for i = 1, #raw, 2 do
    local member, token, epoch, cap = string.match(raw[i + 1], '^(%S+) (%d+) (%d+) (%d+)$')
    out[#out + 1] = {n = tonumber(raw[i]), member = member, token = tonumber(token), epoch = tonumber(epoch), cap = tonumber(cap)}
  end
  return out
end

local function put_slot(key, n, member, token, epoch, cap)
  redis.call('HSET', S .. 's:' .. key, int(n), member .. ' ' .. int(token) .. ' ' .. int(epoch) .. ' ' .. int(cap))
  redis.call('HSET', S .. 'm:' .. member, int(token), int(n) .. ' ' .. key)
  redis.call('SADD', S .. 'members', member)
end

local function own_slots(member)
  local raw, out = redis.call('HGETALL', S .. 'm:' .. member), {}
  for i = 1, #raw, 2 do
    local n, key = string.match(raw[i + 1], '^(%d+) (.*)$')
    out[#out + 1] = {token = tonumber(raw[i]), n = tonumber(n), key = key}
  end
  return out
end

local function remove_slot(member, token)
  local v = redis.call('HGET', S .. 'm:' .. member, int(token))
  if not v then return 0 end
  local n, key = string.match(v, '^(%d+) (.*)$')
  redis.call('HDEL', S .. 's:' .. key, n)
  redis.call('HDEL', S .. 'm:' .. member, int(token))
  return 1
end

-- Wants. S w:KEY is a hash of member to "cap since seen", S q:MEMBER the keys it wants by when it did last.
local FRESH = 10000000

local function wants_of(key, now)
  local raw, out = redis.call('HGETALL', S .. 'w:' .. key), {}
  for i = 1, #raw, 2 do
    local cap, since, seen = string.match(raw[i + 1], '^(%d+) (%d+) (%d+)$')
    if now - tonumber(seen) < FRESH then
      out[#out + 1] = {member = raw[i], cap = tonumber(cap), since = tonumber(since)}
    else
      redis.call('HDEL', S .. 'w:' .. key, raw[i])
    end
  end
  return out
end

local function put_want(key, member, cap, since, now)
  redis.call('HSET', S .. 'w:' .. key, member, int(cap) .. ' ' .. int(since) .. ' ' .. int(now))
  redis.call('PEXPIRE', S .. 'w:' .. key, 60000)
  redis.call('ZADD', S .. 'q:' .. member, int(now), key)
  redis.call('ZREMRANGEBYSCORE', S .. 'q:' .. member, '-inf', int(now - 2 * FRESH))
  redis.call('PEXPIRE', S .. 'q:' .. member, 60000)
  redis.call('SADD', S .. 'members', member)
end

local function remove_want(key, member)
  if redis.call('HDEL', S .. 'w:' .. key, member) == 1 then redis.call('ZREM', S .. 'q:' .. member, key) end
end

-- remove_member takes all that a member has in the space, and says how many slots that was.
local function remove_member(member)
  local freed = 0
  for _, s in ipairs(own_slots(member)) do freed = freed + remove_slot(member, s.token) end
  for _, key in ipairs(redis.call('ZRANGE', S .. 'q:' .. member, 0, -1)) do redis.call('HDEL', S .. 'w:' .. key, member) end
  redis.call('DEL', S .. 'q:' .. member)
  redis.call('SREM', S .. 'members', member)
  return freed
end

-- list_slots appends slots to out, six values each.
local function list_slots(out, key, slots)
  for _, s in ipairs(slots) do
    for _, v in ipairs({key, int(s.n), s.member, int(s.token), int(s.epoch), int(s.cap)}) do out[#out + 1] = v end
  end
end

local function all_slots()
  local out, seen = {}, {}
  for _, member in ipairs(redis.call('SMEMBERS', S .. 'members')) do
    for _, own in ipairs(own_slots(member)) do
      if not seen[own.key] then
        seen[own.key] = true
        list_slots(out, own.key, slots_of(own.key))
      end
    end
  end
  return out
end

-- cap_of is the smallest cap that is declared: by the ask (0: none), by slots, by wants.
local function cap_of(declared, slots, wants)
  local least = declared
  local function lower(v) if v > 0 and (least == 0 or v < least) then least = v end end
  for _, s in ipairs(slots) do lower(s.cap) end
  for _, w in ipairs(wants) do lower(w.cap) end
  return least
end

-- Sessions and the authority, where Redis stands alone.
local function session(member)
  local r = redis.call('HMGET', P .. 'session:' .. member, 'state', 'seq', 'acked')
  if not r[1] then return nil end
  return {state = r[1], seq = tonumber(r[2]), acked = tonumber(r[3])}
end

local AUTHORITY = {'epoch', 'mode', 'target', 'run', 'repl', 'stamp', 'system', 'start', 'hold', 'changed', 'reason', 'falls', 'fell', 'pin', 'life'}
local NUMBERS = {epoch = true, stamp = true, hold = true, changed = true, falls = true, fell = true}

local function authority()
  local raw, a = redis.call('HMGET', P .. 'authority', unpack(AUTHORITY)), {}
  for i, name in ipairs(AUTHORITY) do
    a[name] = raw[i] or ''
    if NUMBERS[name] then a[name] = tonumber(raw[i] or 0) end
  end
  return a
end

local function set_authority(a)
  local args = {}
  for _, name in ipairs(AUTHORITY) do
    args[#args + 1] = name
    args[#args + 1] = NUMBERS[name] and int(a[name]) or a[name]
  end
  redis.call('HSET', P .. 'authority', unpack(args))
end

-- server is the identity of what stands alone: another life is another data set, another run a restart that may have lost writes.
local function server(a)
  local run, repl = identity()
  return {system = repl .. '.' .. a.life, start = run}
end

local function same_server(a, s) return a.system == s.system and a.start == s.start end

-- tell is the authority for an answer.
local function tell(a, s, now)
  local out = {}
  for _, name in ipairs(AUTHORITY) do out[#out + 1] = NUMBERS[name] and int(a[name]) or a[name] end
  out[#out + 1], out[#out + 2], out[#out + 3] = s.system, s.start, int(now)
  return out
end

-- check is what every grant checks: nil, or why not. v is the view of the request.
local function check(member, v, now)
  if v.mode == 'redis' then
    local g = redis.call('HMGET', P .. 'guard', 'epoch', 'stamp')
    if tonumber(g[1] or 0) ~= v.epoch then return stale('epoch ' .. int(v.epoch) .. ' is not here') end
    if tonumber(g[2] or 0) ~= v.stamp then return stale('seeded again since') end
    local run, repl = identity()
    if run ~= v.run or repl ~= v.repl then return stale('redis ' .. run .. ', expected ' .. v.run) end
    if now >= v.till then return ended(now, v.till) end
    return nil
  end
  local a, row = authority(), session(member)
  if not row then return {'fenced', 'session has no row'} end
  if row.state ~= 'live' then return {'fenced', 'session is ' .. row.state} end
  if row.acked ~= a.epoch then return stale('session acked ' .. int(row.acked) .. ", today's epoch is " .. int(a.epoch)) end
  if a.epoch ~= v.epoch then return stale('epoch ' .. int(v.epoch) .. ", today's is " .. int(a.epoch)) end
  if v.asked ~= 'db' or a.mode ~= 'db' then return stale('mode ' .. v.asked .. ", today's is " .. a.mode) end
  local s = server(a)
  if not same_server(a, s) or v.system ~= s.system or v.start ~= s.start then return stale('redis is another') end
  if now >= v.till then return ended(now, v.till) end
  return nil
end

-- barrier is nil when the drain of epoch e may end.
local function barrier(a, s, e, now)
  if a.epoch ~= e or a.mode ~= 'drain' then return stale('end of drain ' .. int(e) .. ', today is ' .. a.mode .. ' ' .. int(a.epoch)) end
  if not same_server(a, s) then return stale('redis is another') end
  for _, member in ipairs(redis.call('SMEMBERS', P .. 'sessions')) do
    local row = session(member)
    if row and row.state == 'live' and row.acked < e then return {'waiting', member .. ' has acked ' .. int(row.acked)} end
  end
  if now < a.hold then return {'waiting', 'commits were lost, ' .. int(a.hold - now) .. ' us to go'} end
  return nil
end

-- Gates. P gate is a hash of key to "gen at changed reason", P changed and P closed order the keys by time.
local function gate(key)
  local v = redis.call('HGET', P .. 'gate', key)
  if not v then return {gen = 1, at = 0, changed = 0, reason = ''} end
  local gen, at, changed, reason = string.match(v, '^(%d+) (%d+) (%d+) (.*)$')
  return {gen = tonumber(gen), at = tonumber(at), changed = tonumber(changed), reason = reason}
end

local function set_gate(key, g)
  redis.call('HSET', P .. 'gate', key, int(g.gen) .. ' ' .. int(g.at) .. ' ' .. int(g.changed) .. ' ' .. g.reason)
  redis.call('ZADD', P .. 'changed', int(g.changed), key)
  redis.call('ZADD', P .. 'closed', int(g.at), key)
end

local function list_gate(out, key, g)
  for _, v in ipairs({key, int(g.gen), int(g.at), g.reason}) do out[#out + 1] = v end
end

-- pause merges a write: the later end wins, a rewrite of an earlier generation is void, one of a later brings a lost clear back;
-- a new one that was set before the gate was cleared is void.
local function pause(w, now)
  local g, at = gate(w.key), now + w.length
  if w.gen == 0 and w.set > 0 and g.gen > 1 and g.at == 0 and w.set <= g.changed then return g end
  if w.gen == 0 or w.gen == g.gen then
    if at <= g.at then return g end
    g.at, g.reason = at, w.reason
  elseif w.gen > g.gen then
    g.gen, g.at, g.reason = w.gen, at, w.reason
  else
    return g
  end
  g.changed = now
  set_gate(w.key, g)
  return g
end
