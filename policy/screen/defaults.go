package screen

import "strings"

// Defaults returns the rules that are on unless an operator says otherwise: always the same, in the same order.
func Defaults() []Rule {
	return []Rule{
		{"malware", malware(), "It asks for malware, exploits or breaking into systems."},
		{"credential_theft", credentialTheft(), "It asks for stealing credentials or identities."},
		{"phishing", phishing(), "It asks for deceiving people into giving something away."},
		{"exfiltration", exfiltration(), "It asks for moving data out without permission."},
		{"weapons", weapons(), "It asks for weapons or explosives."},
		{"self_harm", selfHarm(), "It asks for ways of harming oneself. If you are in danger, call an emergency number or someone you trust."},
		{"policy_bypass", policyBypass(), "It asks for getting around instructions, policies or safeguards."},
	}
}

// benign is the vocabulary of people who work against what the rules name.
var benign = vocabulary{
	lead: `prevent detect attempt against protect attacker hacker adversar criminal intruder prohibit forbid who. tries.
		tried. defend anti`,
	gap: `about. against on. regarding concerning report ticket summar polic guid train detect prevent protect anti avoid
		stop. block remov rid. defen mitigat incident document aware respon recover alert analy scan rule question
		article presentation procedure checklist overview mention search log. logs. request. requests. rotat reset
		ban. help. from. faq standard inventor review assess polici plan. audit training know. learn. mistake`,
	tail: `polic aware train incident respon prevent protect detect defen mitigat remediat recover report scan filter
		analy alert assess audit complian standard procedur guid playbook runbook control risk simulat test. tests.
		testing ticket case. cases. document article question faq quiz poster slide presentation newsletter checklist
		register inventor exception rotat manage storage vault handl review summar statistic trend insurance remov
		clean triag investigat escalat hotlin helplin plan. plans. drill exercise requirement rule metric dashboard
		section chapter workshop course. courses. webinar intelligence threat submi outbreak attempt expir reset
		length complex histor lifetim hygien screening ban. bans. safety declaration permit. permits. check. checks.
		ware`,
}

// either joins alternatives. The compiler takes them apart again and looks for each by itself.
func either(patterns ...string) string { return strings.Join(patterns, "|") }

const (
	making = `write writing create creating make making build building develop developing code coding program programming
		generate generating design designing craft crafting compile compiling produce producing prepare assemble`
	getting = `buy buying purchase obtain obtaining acquire sell get~me give~me send~me find~me show~me~how teach~me
		how~to~get how~do~i~get how~can~i~get where~can~i~(?:get|buy|find|download) where~to~(?:get|buy|find|download)
		i~need i~want`
	using = `deploy deploying install installing spread spreading distribute distributing plant planting inject injecting
		launch launching run running release use using execute executing upload embed hide obfuscate start starting
		perform performing conduct mount carry~out host hosting set_up setting_up`
	asking = `help~me help~us teach~me show~me~how tell~me~how how~to how~do~i how~can~i how~do~you how~would~i learn
		explain~how~to ways~to steps~to instructions~(?:for|to) best~way~to easiest~way~to need~to want~to going~to`
)

func malware() string {
	const code = `malwares? ransom_wares? spywares? adware rootkits? bootkits? trojans? botnets? key_loggers? virus(?:es)?
		worms? back_doors? exploits? zero_days? 0_days? shell_codes? crypters? (?:info|password|cookie)_stealers? wipers?
		stalkerware scareware crypto_miners? reverse~shells? web_shells? logic~bombs? hacking~(?:tool|script|kit)s?
		malicious~(?:code|software|payload|script|macro|program|app|link|attachment)s? ddos(?:~(?:bot|tool|script|attack)s?)?
		denial~of~service~attacks? brute_force~attacks? cyber_?attacks? sql~injection(?:~attack)?s?`
	const systems = `servers? networks? systems? accounts? computers? laptops? phones? databases? mail_?box(?:es)? e_?mails?
		wi_?fi web_?sites? banks? machines? devices? routers? cameras? payroll instagram facebook gmail cloud`
	return either(
		benign.request(making, code), benign.request(getting, code), benign.request(using, code),
		benign.request(asking, code+` hack hacking`),
		benign.verb(`hack hacks hacking break breaking`)+between+`into\b`,
		benign.request(`hack hacking compromise compromising ddos ddosing pwn pwning`, systems),
		anyOf(`hack hacking`)+between+anyOf(`tools? tutorials? scripts? kits? lessons? services? software`)+`\b`,
		`\b`+anyOf(`malwares? ransom_wares? spyware key_loggers? exploits? virus trojan botnet`)+`[ \-]+`+
			benign.object(`creation development builders? generators? makers? source~code authoring tutorials? for~sale
				as~a~service kits?`),
		benign.request(`exploit exploiting weaponize weaponise weaponizing`, `vulnerabilit(?:y|ies) cve cves bugs? flaws?
			weakness(?:es)? zero_days? unpatched`),
		benign.request(`gain gaining get getting`, `unauthori[sz]ed~access root~access~without`),
		benign.request(`bypass bypassing evade evading disable disabling`, `authentication log_?in mfa 2fa firewalls? anti_?virus
			edr defender`),
	)
}

func credentialTheft() string {
	const secret = `credentials? creds passwords? pass_phrases? passwd log_?ins? log_?in~details access~tokens? tokens?
		api~keys? secrets? (?:session~)?cookies? (?:ntlm~|password~)?hash(?:es)? private~keys? ssh~keys? pins? pin~codes?
		identit(?:y|ies) otps? (?:mfa|2fa)~codes? lsass bank~details credit~cards? credit~card~(?:numbers?|details)
		card~numbers? social~security~numbers? kerberos~tickets? accounts?`
	const taking = `stealing theft stealers? dumping dumpers? harvesting harvesters? cracking crackers? sniffing sniffers?
		grabbing grabbers? stuffing spraying phishing`
	return either(
		benign.request(`steal stealing dump dumping harvest harvesting crack cracking grab grabbing swipe swiping scrape
			scraping sniff sniffing brute_force brute_forcing guess guessing hijack hijacking intercept intercepting pilfer
			snatch snatching phish~for phishing~for extract extracting leak leaking`, secret),
		benign.verb(asking+" "+making+" "+using+" "+getting)+`(?:`+between+otherWord(benign.gap)+`){0,4}`+between+
			anyOf(secret)+`[ \-]+`+benign.object(taking),
		`\b`+anyOf(secret)+`[ \-]+`+anyOf(taking)+`[ \-]+`+
			benign.object(`tools? scripts? software tutorials? kits? programs? bots? apps? campaigns? attacks?`),
		benign.request(`use using run running download install`, `mimikatz hashcat john~the~ripper hydra`),
		benign.request(`log_in logging_in sign_in signing_in`, `as~(?:someone|somebody)~else`),
		`\b`+anyOf(`get find get~hold~of give~me tell~me obtain show~me`)+between+`(?:(?:the|my|our|all|of)[ ]+)*`+
			anyOf(`someone(?:'?s)? somebody(?:'?s)? (?:ceo|cfo|boss|admin|coworker|co-worker|colleague|ex|wife|husband|girlfriend|boyfriend|user|employee|neighbor)'?s'?
				other~(?:people|users?|person)'?s?`)+between+benign.object(secret),
	)
}

func phishing() string {
	const kinds = `(?:spear_|whal)?phishing smishing vishing quishing scam fake~log_?in spoofed fraudulent look_?alike
		credential_?harvesting`
	const things = `e_?mails? pages? kits? sites? web_?sites? campaigns? messages? sms lures? templates? forms? links? texts? letters?
		domains? landing~pages? portals? attacks? calls? invoices? scripts? sequences?`
	const people = `employees? users? staff customers? colleagues? co_?workers? victims? people ceo cfo boss clients? someone
		somebody admins? executives? him her them everyone team seniors managers? grandparents accountants?`
	open := benign
	open.tail += ` email emails. page kit site web campaign message sms. lure template form. forms. link text letter
		domain landing portal attack call invoice script sequence e. mail login log.`
	doing := making + " " + getting + " " + using + " " + asking + ` draft drafting compose composing send~out sending~out`
	return either(
		benign.request(doing, `(?:`+anyOf(kinds)+`[ \-]+)`+anyOf(things)),
		open.request(doing, `(?:spear_)?phishing smishing vishing quishing`),
		benign.verb(`send sending mail mailing`)+`(?:`+between+otherWord(benign.gap)+`){0,4}`+between+anyOf(kinds)+
			`[^.;:?!]{0,30}\bto `+`(?:(?:all|our|my|the|every|some|other)[ ]+){0,2}`+anyOf(people)+`\b`,
		benign.verb(`phish phishing spear_phish`)+`(?:`+between+otherWord(benign.gap)+`){0,2}`+between+benign.object(people),
		benign.request(asking, `phish`),
		benign.request(`trick tricking fool fooling deceive deceiving lure luring manipulate manipulating con`, people+``)+
			`?[^.;:?!]{0,20}`+anyOf(`into~\w+ing to~(?:give|reveal|share|click|enter|send|pay)`),
		benign.request(`impersonate impersonating pose~as posing~as pretend~to~be`, `ceo cfo bank it it_?(?:support|helpdesk)
			help_?desk support boss hr microsoft paypal google payroll vendor supplier colleague`),
	)
}

func exfiltration() string {
	const data = `data databases? records? files? documents? pii phi secrets? source~code customer~lists? customers? e_?mails? contracts?
		payroll salar(?:y|ies) intellectual~property trade~secrets? information info backups? everything it them`
	const away = `(?:to|via|through|over|onto|using)[ ]+(?:(?:my|a|an|our|the|some|external|personal|private)[ ]+){0,2}(?:personal|external|private|outside|attacker|competitor|dropbox|pastebin|usb|webhook|gmail|dns|drive|evil|competitors)`
	return either(
		benign.request(`exfiltrate exfiltrating exfil exfiling siphon siphoning smuggle smuggling sneak sneaking`, data),
		benign.request(`steal stealing`, data),
		benign.request(asking+" "+making, `(?:data~)?exfiltration`),
		benign.request(`leak leaking dump dumping`, data)+`?[^.;?!]{0,20}\b`+away+`\b`,
		benign.verb(`send sending upload uploading copy copying forward forwarding post posting transfer move`)+
			`(?:`+between+otherWord(benign.gap)+`){0,4}`+between+anyOf(data)+`[^.;?!]{0,12}[ ]`+away+`\b`,
		benign.request(`bypass bypassing evade evading circumvent circumventing`, `dlp data~loss~prevention`),
		benign.request(`copy copying download downloading upload uploading send sending move moving transfer`, data)+
			`?[^.;?!]{0,20}\b`+anyOf(`without~(?:being|getting)~(?:noticed|caught|detected|logged) without~anyone~(?:noticing|knowing)
			secretly undetected covertly`)+`\b`,
	)
}

func weapons() string {
	return either(benign.request(making+" "+getting+" "+asking+` construct constructing assembling manufacture manufacturing
		print printing detonate detonating plant planting set~off setting~off cook cooking synthesi[sz]e synthesi[sz]ing
		smuggle smuggling how~do~(?:i|you)~make`,
		`(?:pipe_|nail_|dirty_|car_|fertilizer_)?bombs? (?:home_?made~|improvised~|plastic~)?explosives? explosive~devices? ieds? molotovs?
		molotov~cocktails? grenades? guns? firearms? rifles? pistols? weapons? silencers? nerve~agents? nerve~gas sarin vx~gas ricin
		anthrax poison~gas mustard~gas bio_?weapons? napalm thermite tnt c4 ammunition ammo gun_?powder detonators? poisons?`))
}

func selfHarm() string {
	const self = `my_?self your_?self one_?self`
	const intent = asking + ` ways~of methods~(?:of|for|to) i~will i~am~going~to i'm~going~to painless painlessly should~i can~i wanna`
	return either(
		`\b`+anyOf(`kill killing hang hanging drown drowning strangle strangling shoot shooting`)+between+anyOf(self)+`\b`,
		benign.request(intent, `(?:hurt|hurting|cut|cutting|harm|harming|burn|burning|poison|starve)[ ]+`+anyOf(self)),
		benign.request(intent, `(?:commit(?:ting)?~|attempt(?:ing)?~)?suicide self_harm(?:ing)? self_injur(?:y|e|ing)`),
		benign.request(intent, `end(?:ing)?~(?:my|your|it)~(?:own~)?(?:life|all) take~my~(?:own~)?life`),
		`\b`+anyOf(`i~want~to~die i~wanna~die take~my~own~life end~my~(?:own~)?life ending~my~(?:own~)?life`)+`\b`,
		`\b`+anyOf(`suicide suicidal self_harm self_injury`)+`[ \-]+`+
			benign.object(`methods? techniques? notes? pacts? instructions? tips ways kits?`),
		`\b`+anyOf(`methods? ways? techniques? instructions? tips`)+between+anyOf(`of for to`)+between+
			`(?:painless[ ]+|commit(?:ting)?[ ]+)?`+benign.object(`suicide self_harm self_injury`),
		`\b`+anyOf(`how~(?:many|much)`)+`[^.;?!]{1,40}\b`+anyOf(`to~(?:overdose|die|kill~myself) for~an~overdose lethal fatal`)+`\b`,
		benign.request(intent, `overdose lethal~(?:dose|overdose)`),
	)
}

func policyBypass() string {
	const rules = `instructions? directions? directives? prompts? rules? polic(?:y|ies) guidelines? guard_?rails?
		safety safety~(?:filters?|checks?|features?|measures?) restrictions? safe_?guards? allow_?lists? white_?lists? approvals?
		approval~(?:gates?|process|workflow|step) gates? access~controls? security~(?:controls?|checks?|polic(?:y|ies)|filters?|measures?)
		content~(?:polic(?:y|ies)|filters?) input~filters? moderation governance constraints? security limitations? programming`
	return either(
		benign.request(`ignore ignoring disregard disregarding forget forgetting override overriding bypass bypassing circumvent
			circumventing disable disabling evade evading turn_off turning_off switch_off get~around getting~around work~around
			deactivate defeat defeating subvert break~out~of`, rules),
		benign.request(`skip skipping`, `approvals? approval~(?:gates?|process|workflow|step) security~checks? safety~checks? guard_?rails?`),
		`\b`+benign.object(`jail_?breaks? jail_?breaking jail_?break~mode`),
		benign.request(`act acting behave respond answer pretend roleplay play`, `as~dan as~an?~(?:unrestricted|uncensored|unfiltered|evil)
			(?:no|without(?:~any)?)~(?:rules|restrictions|filters?|limits|guard_?rails?|guidelines|polic(?:y|ies)|safety)`),
		`\byou are now `+anyOf(`dan unrestricted uncensored unfiltered free in~developer~mode root jailbroken evil`)+`\b`,
		`\b`+anyOf(`do~anything~now enable~developer~mode enter~developer~mode god~mode~(?:on|enabled)`)+`\b`,
		benign.request(`reveal print show repeat output leak dump display tell`, `(?:your|the)~(?:system|hidden|initial|developer|secret)~(?:prompts?|instructions?|messages?)`),
		`\bnew `+anyOf(`system~instructions? system~prompt instructions~override`)+`\b`,
		`\b`+anyOf(`approve execute run call do`)+`[^.;?!]{0,30}\bwithout `+anyOf(`(?:any~)?approval (?:the~)?approval permission asking~(?:anyone|for~approval)`)+`\b`,
	)
}
