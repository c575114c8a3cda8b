package screen

import "sync"

// A defaultRule is a rule and, separated by spaces, the beginnings of words of which one is in
// every text that it matches.
type defaultRule struct {
	Rule
	needs string
}

// Defaults returns the rules that are on unless an operator says otherwise: always the same, in the
// same order.
func Defaults() []Rule {
	var rules []Rule
	for _, d := range defaults() {
		rules = append(rules, d.Rule)
	}
	return rules
}

// defaults are made once, because that takes long.
var defaults = sync.OnceValue(func() []defaultRule {
	return []defaultRule{
		{
			Rule{"malware", malwarePattern(), "It asks for malware, exploits or breaking into systems."},
			"ware worm kit trojan botnet logger virus door exploit day crypter stealer wiper miner bomb hack malicious ddos denial brute attack sql injection shell break compromis pwn weaponi unauthori root bypass evad disabl",
		},
		{
			Rule{"credential_theft", credentialTheftPattern(), "It asks for stealing credentials or identities."},
			"cred pass log token key secret cookie hash pin identit otp code lsass detail card number ticket account mimikatz john",
		},
		{
			Rule{"phishing", phishingPattern(), "It asks for deceiving people into giving something away."},
			"ishing scam fake spoof fraud look phish trick fool deceiv lur manipulat impersonat pos pretend",
		},
		{
			Rule{"exfiltration", exfiltrationPattern(), "It asks for moving data out without permission."},
			"exfil siphon smuggl sneak steal leak dump export send upload copy forward post transfer mov download bypass evad circumvent",
		},
		{
			Rule{"weapons", weaponsPattern(), "It asks for weapons or explosives."},
			"bomb explosive ied molotov grenade gun firearm rifle pistol weapon silencer nerve sarin vx ricin anthrax gas napalm thermite tnt c4 ammo ammunition detonator poison blow",
		},
		{
			Rule{"self_harm", selfHarmPattern(),
				"It asks for ways of harming oneself. If you are in danger, call an emergency " +
					"number or someone you trust."},
			"self suicid overdose lethal die dose hurt cut harm burn poison starve life fatal",
		},
		{
			Rule{"policy_bypass", policyBypassPattern(),
				"It asks for getting around instructions, policies or safeguards."},
			"ignor disregard forget overrid bypass circumvent disabl evad off around deactivat defeat subvert remov skip jail dan unrestricted uncensored unfiltered evil rules restriction filter limit guard polic guideline anything developer mode prompt instruction without message",
		},
	}
})

// Verbs of wanting a thing to exist, to be had, to be used or to be explained.
var (
	making = inflectVerbs(`writ creat mak cod generat compil produc prepar assembl`, `build develop program design
			craft draft`)
	asking = anyOf(`help~(?:me|us) (?:teach|show|tell)~(?:me|us)(?:~how)? how~(?:to|do~(?:i|you)|can~i|would~i) learn
		(?:ways|steps|need|want|going|wanna|way|instructions)~(?:to|for) i~(?:need|want) (?:get|give|send|find)~me
		where~(?:to|do~i|can~i)~(?:get|buy|find|download)`)
	having = making + `|` + asking + `|` + inflectVerbs(`purchas acquir`, `buy obtain sell`)
	doing  = `(?:` + having + `|` + inflectVerbs(`distribut releas us execut hid obfuscat`, `deploy install spread
			plant inject
		launch run embed start perform conduct mount carry~out host set_up`) + `|setting_up)`
)

func malwarePattern() string {
	const code = `malwares? ransom_wares? spywares? rootkits? bootkits? trojans? botnets? key_loggers? virus(?:es)?
			worms?
		back_doors? exploits? (?:zero|0)_days? shell_codes? crypters? (?:info|cookie)_stealers? wipers? stalkerware
		crypto_miners? reverse~shells? web_shells? logic~bombs? hacking~(?:tool|script|kit|tutorial)s?
		malicious~(?:code|software|payload|script|macro|program|app)s? ddos denial~of~service brute_force~attacks?
			cyber_?attacks?
		sql~injection`

	const systems = `servers? networks? systems? accounts? computers? laptops? (?:smart)?phones? databases?
			mail_?box(?:es)?
		e_?mails? wi_?fi web_?sites? banks? machines? devices? routers? cameras? payroll instagram facebook gmail cloud`
	return requestPattern(
		doing+far+anyOf(code),
		asking+near+anyOf(`hack hacking`),
		anyOf(`hack(?:s|ing)? break(?:ing)?`)+between+`into`,
		anyOf(`hack(?:ing)? compromis(?:e|ing) ddos(?:ing)? pwn(?:ing)?`)+near+anyOf(systems),
		anyOf(`hack(?:ing)?`)+between+anyOf(`tools? tutorials? scripts? kits? lessons? services? software`),
		anyOf(`malwares? ransom_wares? spyware key_loggers? exploits? virus trojan botnet`)+`[ \-]+`+
			anyOf(`creation development builders? generators? makers? source~code authoring tutorials? for~sale
			as~a~service`),
		anyOf(`exploit(?:ing)? weaponi[sz](?:e|ing)`)+near+
			anyOf(`vulnerabilit(?:y|ies) cves? bugs? flaws? weakness(?:es)? unpatched`),
		anyOf(`gain(?:ing)? get(?:ting)?`)+near+anyOf(`unauthori[sz]ed~access root~access~without`),
		anyOf(`bypass(?:ing)? evad(?:e|ing)`)+near+anyOf(`authentication log_?in mfa 2fa firewalls?`),
		anyOf(`bypass(?:ing)? evad(?:e|ing) disabl(?:e|ing)`)+near+anyOf(`anti_?virus edr defender`),
	)
}

func credentialTheftPattern() string {
	const secret = `credentials? creds pass_?words? pass_phrases? log_?ins? log_?in~details
			(?:access~|bearer~)?tokens? api~keys?
		secrets? (?:session~)?cookies? (?:ntlm~|password~)?hash(?:es)? private~keys? ssh~keys? pins? pin~codes?
			identit(?:y|ies)
		otps? (?:mfa|2fa)~codes? lsass bank~details credit~cards? (?:credit~)?card~(?:numbers?|details)
			social~security~numbers?
		kerberos~tickets? accounts?`

	const taking = `stealing theft stealers? dumping dumpers? harvesting harvesters? cracking crackers? sniffing
			sniffers?
		grabbing grabbers? stuffing spraying`
	return requestPattern(
		`(?:`+anyOf(`steal(?:ing)? dump(?:ing)? harvest(?:ing)? crack(?:ing)? grab(?:bing)? swip(?:e|ing) scrap(?:e|ing)
			sniff(?:ing)? brute_forc(?:e|ing) guess(?:ing)? hijack(?:ing)? intercept(?:ing)? snatch(?:ing)?
			phish(?:ing)?~for extract(?:ing)? leak(?:ing)?`)+near+`|`+
			anyOf(`get find (?:give|tell|show)~me obtain`)+`[ ](?:(?:the|my|our|of|hold|all)[ ])*`+
			anyOf(`some(?:one|body) ceo cfo boss admin co_?worker colleague ex wife husband girlfriend boyfriend
			neighbor
			other~(?:people|user|person)s?`)+`(?:[ ]?'?s?'?)[ ](?:else'?s?[ ])?)`+anyOf(secret),
		doing+far+anyOf(secret)+`[ \-]*`+anyOf(taking),
		anyOf(`credentials? pass_?words? tokens? cookies?`)+`[ \-]+`+anyOf(taking)+`[ \-]+`+
			anyOf(`tools? scripts? software tutorials? kits? bots? apps? campaigns?`),
		doing+far+`(?:stolen|leaked)[ ]`+anyOf(`pass_?words credentials accounts cards`),
		anyOf(`us(?:e|ing) run(?:ning)? download install`)+near+anyOf(`mimikatz hashcat john~the~ripper`),
	)
}

func phishingPattern() string {
	const kinds = `(?:spear_|whal)?phishing smishing vishing quishing scam fake~(?:\w+~)?log_?in spoofed fraudulent
		look_?alike~log_?in`
	const things = `e_?mails? pages? kits? (?:web_?)?sites? campaigns? messages? sms lures? templates? forms?
			links? texts? letters?
		domains? landing~pages? portals? attacks? calls? invoices? scripts?`
	const people = `employees? users? staff customers? colleagues? co_?workers? victims? people ceo cfo boss clients?
		some(?:one|body) admins? executives? him her them everyone team seniors managers? accountants?`
	return requestPattern(
		doing+far+
			`(?:`+anyOf(kinds)+`(?:[ \-]+`+anyOf(things)+`)?)`,
		anyOf(`send(?:ing)?
			mail(?:ing)?`)+near+`(?:ph|sm|v)ishing`+
			`[^.;:?!]{0,30}?[ ]to[ ](?:(?:all|our|my|the|every|other)[ ])*`+anyOf(people),
		anyOf(`(?:spear_)?phish(?:ing)?`)+`[ ](?:(?:all|our|my|the|every|other|a|an|finance)[ ])*`+anyOf(people),
		asking+between+`phish`,
		anyOf(`trick(?:ing)? fool(?:ing)? deceiv(?:e|ing) lur(?:e|ing)
			manipulat(?:e|ing)`)+near+anyOf(people)+`[^.;:?!]{0,20}?`+
			anyOf(`into~\w+ing to~(?:give|reveal|share|click|enter|send|pay)`),
		anyOf(`impersonat(?:e|ing) pos(?:e|ing)~as pretend(?:ing)?~to~be`)+near+anyOf(`ceo cfo bank
			it_(?:support|helpdesk|department)
			help_?desk support boss hr microsoft paypal google payroll vendor supplier colleague`),
	)
}

func exfiltrationPattern() string {
	const data = `data databases? records? files? documents? pii phi secrets? source~code customer~lists? e_?mails?
			contracts?
		payroll salar(?:y|ies) intellectual~property information info backups? everything it them`
	const away = `[ ](?:to|via|through|over|onto|using)[ ](?:(?:my|an|our|the|some|own|[a-z0-9@])[ ])*` +
		`(?:personal|external|private|outside|attacker|competitor|dropbox|pastebin|usb|webhook|gmail|dns|evil)\w*`
	return requestPattern(
		anyOf(`exfil(?:trat(?:e|ing)|ing)? siphon(?:ing)? smuggl(?:e|ing) sneak(?:ing)?
			steal(?:ing)?`)+near+anyOf(data),
		doing+far+`exfiltrat(?:ion|ing|e)`,
		anyOf(`leak(?:ing)? dump(?:ing)? export(?:ing)? send(?:ing)? upload(?:ing)? copy(?:ing)? forward(?:ing)?
			post(?:ing)? transfer(?:ring)?
			mov(?:e|ing)`)+near+anyOf(data)+`[^.;?!]{0,20}?`+away,
		anyOf(`copy(?:ing)? download(?:ing)? upload(?:ing)? send(?:ing)? mov(?:e|ing) transfer`)+near+anyOf(data)+
			`[^.;?!]{0,20}?[ ]`+
			anyOf(`without~(?:being~|getting~)?(?:noticed|caught|detected|logged|anyone~(?:noticing|knowing)|detection)
			secretly undetected covertly`),
		anyOf(`bypass(?:ing)? evad(?:e|ing) circumvent(?:ing)?`)+near+anyOf(`dlp data~loss~prevention`),
	)
}

func weaponsPattern() string {
	return requestPattern(`(?:`+having+`|`+inflectVerbs(`manufactur detonat synthesi[sz] smuggl`,
		`construct print plant set(?:ting)?~off cook`)+`)`+far+
		anyOf(`(?:pipe_|nail_|dirty_|car_|fertilizer_)?bombs? explosives? explosive~devices? ieds?
			molotovs?(?:~cocktails?)?
		grenades? (?:ghost~)?guns? firearms? rifles? pistols? (?:chemical~|nuclear~|biological~)?weapons? silencers?
		nerve~(?:agents?|gas) sarin vx~gas ricin anthrax (?:poison|mustard)~gas bio_?weapons? napalm thermite tnt c4
		ammunition ammo gun_?powder detonators? poisons?`),
		`blow(?:ing)?[ ]up`+near+anyOf(`buildings? schools? offices? cars? bridges? planes? houses? banks? people`))
}

func selfHarmPattern() string {
	const self = `my_?self your_?self one_?self`
	intent := `(?:` + asking + `|` + anyOf(`(?:ways|methods)~(?:of|to|for) i~will painless(?:ly)?
			(?:should|can)~i`) + `)`
	return requestPattern(
		anyOf(`kill(?:ing)? hang(?:ing)? drown(?:ing)? strangl(?:e|ing) shoot(?:ing)?`)+between+anyOf(self),
		intent+near+anyOf(`hurt(?:ing)? cut(?:ting)? harm(?:ing)? burn(?:ing)? poison starve`)+between+anyOf(self),
		intent+far+anyOf(`(?:commit(?:ting)?~)?suicide self_harm(?:ing)? self_injur(?:y|e|ing) overdose
			lethal~dose`),
		anyOf(`i~want~to~die i~wanna~die tak(?:e|ing)~my~own~life end(?:ing)?~(?:my|your)~(?:own~)?life`),
		anyOf(`suicid(?:e|al) self_harm self_injury`)+between+anyOf(`methods? techniques? notes? pacts?
			instructions? tips ways kits?`),
		anyOf(`methods? ways? techniques? instructions? tips`)+between+anyOf(`of for to`)+between+near+
			anyOf(`suicide self_harm self_injury`),
		`how[ ](?:many|much)[^.;?!]{1,40}?`+anyOf(`to~(?:overdose|die|kill~myself) for~an~overdose lethal fatal`),
	)
}

func policyBypassPattern() string {
	const rules = `instructions? directions? directives? prompts? rules? polic(?:y|ies) guidelines? guard_?rails?
		restrictions? safe_?guards? (?:allow|white)_?lists? approvals? gates? access~controls? security moderation
			governance
		constraints? limitations? programming (?:content|input|safety)~(?:filter|check)s?`
	return requestPattern(
		anyOf(`ignor(?:e|ing) disregard(?:ing)? forget(?:ting)? overrid(?:e|ing) bypass(?:ing)? circumvent(?:ing)?
			disabl(?:e|ing)
			evad(?:e|ing) (?:turn|switch)(?:ing)?_off get(?:ting)?~around work(?:ing)?~around deactivat(?:e|ing)
			defeat(?:ing)?
			subvert(?:ing)? remov(?:e|ing)~(?:all|any|your)`)+far+`(?:(?:safety|security)[ ])?`+anyOf(rules),
		anyOf(`skip(?:ping)?`)+near+anyOf(`approvals? (?:security|safety)~checks? guard_?rails?`),
		`jail_?break(?:s|ing)?`,
		anyOf(`act behav(?:e|ing) respond answer pretend roleplay play`)+near+anyOf(`as~dan
			as~an?~(?:unrestricted|uncensored|unfiltered|evil)
			(?:no|without(?:~any)?)~(?:rules|restrictions|filters?|limits|guard_?rails?|guidelines|polic(?:y|ies))`),
		`you[ ](?:now[ ])?have[ ]no[ ]`+anyOf(`rules restrictions limits guidelines filters`),
		`you[ ]are[ ]now[ ]`+anyOf(`dan unrestricted uncensored unfiltered in~developer~mode jailbroken evil`),
		anyOf(`do~anything~now (?:enable|enter)~developer~mode new~system~(?:prompt|instruction)s?`),
		anyOf(`reveal(?:ing)? print show repeat output leak dump display tell`)+near+
			`(?:your|the)[ ](?:system|hidden|initial|developer|secret)[ ](?:prompt|instruction|message)s?`,
		anyOf(`approve execute run call do`)+`[^.;?!]{0,30}?[ ]without[ ](?:any[ ]|the[ ])?`+
			anyOf(`approval permission asking~(?:anyone|for)`),
	)
}
