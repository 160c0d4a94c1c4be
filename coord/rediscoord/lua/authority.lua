-- authority: the row and who answers.
local a = authority()
return {'ok', tell(a, server(a), clock())}
