-- grant: core.DecideGrant. in: {member, view, groups: [[[key, cap, token]]]}
-- out: per group its numbers or "waiting key" of the key that was full; key and cap of each key asked for.
local a, now = cjson.decode(ARGV[1]), clock()
local bad = check(a.member, a.view, now)
if bad then return bad end

local slots, wants, caps = {}, {}, {}
local out, settled, wanted = {}, {}, {}
for i, group in ipairs(a.groups) do
  local numbers, add, full = {}, {}, {}
  for j, k in ipairs(group) do
    local key, cap, token = k[1], k[2], k[3]
    if not slots[key] then slots[key], wants[key] = slots_of(key), wants_of(key, now) end
    local limit = cap_of(cap, slots[key], wants[key])
    caps[key] = limit
    local taken, count, n = {}, 0, 0
    for _, s in ipairs(slots[key]) do
      if s.member == a.member and s.token == token then n = s.n end
      taken[s.n], count = true, count + 1
    end
    for _, s in ipairs(add) do
      if s.key == key then taken[s.n], count = true, count + 1 end
    end
    if n == 0 and count < limit then
      n = 1
      while taken[n] do n = n + 1 end
      add[#add + 1] = {key = key, n = n, member = a.member, token = token, epoch = a.view.epoch, cap = cap}
    end
    if n == 0 then full[#full + 1] = k end
    numbers[j] = n
  end
  if #full > 0 then
    local waiting = 1
    for _, w in ipairs(wants[full[1][1]]) do
      if w.member ~= a.member then waiting = waiting + 1 end
    end
    out[i] = int(waiting) .. ' ' .. full[1][1]
    for _, k in ipairs(full) do wanted[k[1]] = wanted[k[1]] or k[2] end
  else
    out[i] = numbers
    for _, s in ipairs(add) do
      table.insert(slots[s.key], s)
      put_slot(s.key, s.n, s.member, s.token, s.epoch, s.cap)
    end
    for _, k in ipairs(group) do settled[k[1]] = true end
  end
end

-- A key that was granted and then full is still wanted, but its wait begins anew.
for key in pairs(settled) do remove_want(key, a.member) end
for key, cap in pairs(wanted) do
  local since = now
  if not settled[key] then
    for _, w in ipairs(wants[key]) do
      if w.member == a.member then since = w.since end
    end
  end
  put_want(key, a.member, cap, since, now)
end
local told = {}
for key, limit in pairs(caps) do
  told[#told + 1], told[#told + 2] = key, int(limit)
end
return {'ok', out, told}
