-- reconcile: core.DecideReconcile. in: {member, view, upto, tokens}
-- out: how many were freed; the missing tokens; key, share and cap where others wait; key and cap of each key.
local r, now = cjson.decode(ARGV[1]), clock()
local bad = check(r.member, r.view, now)
if bad then return bad end

local named, recorded, keep, free = {}, {}, {}, {}
for _, token in ipairs(r.tokens) do named[token] = true end
for _, s in ipairs(own_slots(r.member)) do
  recorded[s.token] = true
  if not named[s.token] and s.token <= r.upto then free[#free + 1] = s.token else keep[#keep + 1] = s end
end
local missing = {}
for _, token in ipairs(r.tokens) do
  if not recorded[token] then missing[#missing + 1] = int(token) end
end
local pressure, caps, done = {}, {}, {}
for _, own in ipairs(keep) do
  if not done[own.key] then
    done[own.key] = true
    local slots, wants = slots_of(own.key), wants_of(own.key, now)
    local limit = cap_of(0, slots, wants)
    caps[#caps + 1], caps[#caps + 2] = own.key, int(limit)
    local parties, count, waited = {[r.member] = true}, 1, false
    local function party(m) if not parties[m] then parties[m], count = true, count + 1 end end
    for _, w in ipairs(wants) do
      party(w.member)
      if w.member ~= r.member and now - w.since >= 2000000 then waited = true end
    end
    for _, s in ipairs(slots) do party(s.member) end
    if waited then
      for _, v in ipairs({own.key, int(math.floor(limit / count)), int(limit)}) do pressure[#pressure + 1] = v end
    end
  end
end
for _, token in ipairs(free) do remove_slot(r.member, token) end
return {'ok', int(#free), missing, pressure, caps}
