-- return: removes slots by token. in: {member, tokens}
local r = cjson.decode(ARGV[1])
for _, token in ipairs(r.tokens) do remove_slot(r.member, token) end
return {'ok'}
