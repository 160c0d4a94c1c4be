package admin

import "fmt"

// say returns a text of the catalogue with its values. A key that is not there is shown as it is; a test finds it before people do.
func say(key string, values ...any) string {
	text, ok := english[key]
	if !ok {
		return key
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// english is all text of the pages. Words of states, reasons, checks and warnings come from where they arise, as in the commands.
var english = map[string]string{
	"any": "any", "filter": "Filter", "more": "and %d more", "nolimit": "no limit", "nomore": "Nothing further.", "noscript": "The picture needs JavaScript; the figures are in the tables.", "until": "until %s",
	"pager": "Pages", "pager.first": "First page", "pager.next": "Next page",

	"nav.skip": "Skip to content", "nav.label": "Main", "nav.cluster": "Cluster", "nav.runs": "Crawls", "nav.users": "Users", "nav.account": "Account",
	"nav.signout": "Sign out",

	"col.beat": "Last beat", "col.created": "Created", "col.depth": "Depth", "col.discovered": "Discovered", "col.do": "Actions", "col.excluded": "Excluded",
	"col.failed": "Failed", "col.fetched": "Fetched", "col.host": "Host", "col.inflight": "In flight", "col.inlinks": "Inlinks", "col.label": "For",
	"col.machine": "Machine", "col.node": "Node", "col.note": "Note", "col.part": "Part", "col.role": "Role", "col.run": "Run", "col.seats": "Seats",
	"col.site": "Site", "col.size": "Size", "col.slots": "Slots", "col.state": "State", "col.status": "Status", "col.tenant": "Tenant", "col.title": "Title",
	"col.token": "Token", "col.until": "Until", "col.url": "URL", "col.urls": "URLs", "col.used": "Last used", "col.version": "Version",
	"col.waits": "Waits for", "col.what": "What", "col.why": "Why", "col.workers": "Workers",

	"cluster.title": "Cluster", "cluster.warnings": "Worth knowing", "cluster.nodes": "Nodes", "cluster.slots": "Slots in use",
	"cluster.spark": "Slots in use lately, at most %d", "cluster.slotsat": "at %s", "cluster.history": "Slots in use lately",
	"cluster.historylabel": "Slots in use over the last time, as a line",
	"cluster.away":         "Redis is unavailable", "cluster.awaysince": "since %s", "cluster.mode": "mode %s", "cluster.cooled": "left alone",
	"cluster.switch": "Who coordinates", "cluster.todb": "Move to the database and keep it there", "cluster.toredis": "Let it go to Redis",
	"cluster.sure":         "Move coordination? No request starts until every node has agreed, which takes some seconds.",
	"cluster.switchhelp":   "The same as deepcrawl cluster coord. By itself coordination goes to the database when most nodes do not reach Redis, and back when they do.",
	"cluster.noredis":      "The database coordinates: no Redis is configured for this server.",
	"cluster.coordination": "Coordination", "cluster.epoch": "epoch %d since %s", "cluster.pinned": "(kept there by an operator)",
	"cluster.notbegun": "no node has joined yet", "cluster.leader": "Leader", "cluster.leads": "since %s", "cluster.none": "none", "cluster.late": "%d late writes refused",
	"cluster.fairness": "Fairness", "cluster.jain": "Jain %s", "cluster.dwell": "waits for a worker: p50 %s, p95 %s, most %s",
	"cluster.nodwell": "nothing had to wait for a worker in the last minute", "cluster.gap": "Run %d is without a worker for %s.", "cluster.ago": "%s ago",
	"cluster.nonode": "No node is running. Start one with", "cluster.active": "Active crawls", "cluster.noactive": "No crawl is active.", "cluster.queue": "Queue",
	"cluster.noqueue": "Nothing waits.", "cluster.byhost": "Slots by host", "cluster.meter": "%s: %d of %d slots", "cluster.nohosts": "No request is under way.",
	"cluster.hosts": "Hosts banned, waiting or left alone", "cluster.banned": "banned", "cluster.paused": "asked to wait", "cluster.unban": "Unban", "cluster.clear": "Clear pause",
	"cluster.noblocked": "No host is banned, waits or is left alone.", "cluster.ban": "Ban a host",
	"cluster.banhelp": "Nodes follow within seconds; requests in flight end by themselves. URLs of a banned host are excluded.",

	"check.title": "Check coordination", "check.start": "Check coordination", "check.running": "checking", "check.began": "Begun %s.",
	"check.help":  "Tries database and coordination for real, on keys made for it; takes some 10 seconds. Nodes may be at work meanwhile.",
	"check.never": "Not checked since this server started.", "check.failed": "%d failed; what to do stands below each.", "check.well": "All went well.",
	"check.broken": "The check could not be carried out to its end; the server's log says why.", "check.back": "Back to the cluster",

	"runs.title": "Crawls", "runs.none": "No crawl here yet.",
	"run.title": "Run %d", "run.name": "run %d", "run.tenant": "tenant %s", "run.created": "created %s", "run.finished": "ended %s", "run.waits": "waits:",
	"run.progress": "Part of the discovered URLs that is finished", "run.of": "of %s discovered", "run.todo": "Queued", "run.doing": "%s claimed, %s delayed",
	"run.excluded": "%s excluded", "run.worked": "Worked for", "run.bystatus": "By status", "run.byreason": "Not fetched, and why",
	"run.nostatus": "No answer.", "run.noreason": "Nothing was left out.", "run.actions": "Steer this run",
	"run.pages": "Pages", "run.exports": "Exports", "run.definition": "Definition",
	"do.pause": "Pause", "do.resume": "Resume", "do.cancel": "Cancel", "do.delete": "Delete", "do.again": "Start it again",
	"sure.cancel": "End this run for good? What was stored stays.", "sure.delete": "Delete this run and all that was stored of it?",
	"export.pages": "Pages", "export.links": "Links", "export.sitemap": "Sitemap XML",

	"chart.title": "Pages over time", "chart.none": "No page is finished.", "chart.figures": "Figures", "chart.from": "From, for %s", "chart.label": "%s pages from %s to %s, at most %s in %s",

	"pages.title": "Pages of run %d", "pages.search": "Part of URL or title", "pages.find": "Find", "pages.all": "All pages", "pages.none": "No such page.",
	"pages.notyet": "None among those looked through so far.", "pages.goon": "Search on",

	"record.all": "Everything that was read", "record.waits": "it is claimed before others while this is open",
	"record.title": "Page of run %d", "record.notitle": "Page without a title", "record.fetch": "Fetch", "record.redirect": "Redirects to", "record.via": "Found on",
	"record.type": "Type", "record.sizes": "%s, %s transferred", "record.time": "Time", "record.times": "%d ms to the first byte, %d ms in all",
	"record.attempts": "Attempts", "record.discovered": "Discovered", "record.finished": "Finished", "record.facts": "On the page",
	"record.description": "Description", "record.robots": "Robots", "record.canonical": "Canonical", "record.h1": "H1", "record.lang": "Language",
	"record.words": "Words", "record.images": "Images", "record.noalt": "%d, %d without alt", "record.links": "Links", "record.kind": "Kind",
	"record.somelinks": "%d of %d links shown; the export has all.",

	"new.title": "New crawl", "new.url": "Start URLs", "new.urlhelp": "One a line.", "new.scope": "Scope", "new.profile": "Profile", "new.max_pages": "Most pages",
	"new.more": "More", "new.max_depth": "Most links away from the start", "new.max_time": "Most time", "new.timehelp": "Such as 30m or 2h.",
	"new.include": "Only URLs that match", "new.exclude": "Leave out URLs that match", "new.patternhelp": "Regular expressions, one a line, searched anywhere in the URL.",
	"new.nositemaps": "Do not read sitemaps", "new.nofollow": "Follow links marked nofollow too", "new.start": "Start",
	"scope.host": "this host", "scope.domain": "the whole domain", "scope.subdomains": "this host and below", "scope.prefix": "this folder and below",
	"profile.gentle": "gentle: 2 at a time, 1 a second", "profile.normal": "normal: 8 at a time", "profile.fast": "fast: up to the host's cap",

	"setup.title": "Set up deepcrawl", "setup.help": "You are the first here. Make the operator, who sees and steers everything.", "setup.do": "Make the operator",
	"setup.closed": "This set-up link is used up or too old. While there is no user, starting deepcrawl serve again prints a new one.",
	"signin.title": "Sign in", "signin.do": "Sign in", "signin.wrong": "Name or password is wrong.",
	"user.name": "Name", "user.password": "Password", "user.passhelp": "10 characters or more; a few words are good.",
	"account.title": "Account", "account.you": "You are %s (%s).", "account.tenant": "Tenant: %s.", "account.tokens": "API tokens",
	"account.tokenhelp": "A program with a token may do what you may. Send it as Authorization: Bearer TOKEN to /api/v1.",
	"account.secret":    "Copy the token now, it is not shown again:", "account.never": "never", "account.revoke": "Revoke", "account.notokens": "No token.",
	"account.label": "What for", "account.add": "Make a token", "account.password": "Password", "account.changed": "The password is changed; other sessions are ended.",
	"account.old": "Present password", "account.new": "New password", "account.change": "Change password", "account.oldwrong": "The present password is wrong.",
	"users.title": "Users", "users.add": "Add a user", "users.remove": "Remove", "users.sure": "Remove %s? Sessions and tokens end at once.",
	"users.exists": "There is a user %s already.",
	"role.member":  "member: starts and steers the tenant's crawls", "role.viewer": "viewer: sees the tenant's crawls", "role.operator": "operator: everything, no tenant",

	"error.ended": "You are not signed in any more.",
	"error.gone":  "This crawl has been deleted.", "error.keys": "A key has 32 hexadecimal digits; at most %d are taken.",
	"error.home": "To the start page", "error.retry": "Try again", "error.notfound": "There is nothing here that you may see.",
	"error.forbidden": "Your role does not allow this.", "error.signin": "Sign in first.", "error.crossorigin": "This was sent by another site and is not carried out.",
	"error.busy": "Too many are watching at once; try again in a moment.", "error.unavailable": "The database does not answer now.",
	"error.internal": "Something went wrong here; the server's log says what.", "error.large": "That is more than may be sent.",
	"error.state": "Not possible now: %s.", "error.json": "The body is no JSON object.", "error.field": "%s: allowed are text, a number, true, false, or a list of those.",
	"error.text": "That holds bytes that are no text (UTF-8).", "error.form": "The form cannot be read.",
	"error.toosoon": "Too many attempts; try again in %d s.", "error.before": "The page's place is no number.",
	"error.runstate": "No such state; allowed: %s.", "error.pagestate": "No such state; allowed: %s.", "error.status": "A status is a number such as 404, or 5xx.",
	"error.nourl": "Give a URL to start from, such as https://example.com.", "error.number": "%s: allowed is a number from 0 (no limit).",
	"error.duration": "Most time: allowed is a duration such as 30m or 2h.",
	"error.export":   "No such export; allowed: pages and links as csv or jsonl, sitemap as xml.",
	"error.password": "A password has %d to %d bytes.", "error.username": "A name has lower-case letters, digits and - _ . @, up to 64.",
	"error.label": "What a token is for has up to %d bytes of text.", "error.role": "Roles are operator, member and viewer.",
	"error.optenant": "An operator has no tenant.", "error.notenant": "Members and viewers need a tenant.", "error.tenant": "There is no tenant %q.",
}
