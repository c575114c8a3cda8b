package screen

import "strings"

// lookalikes lists, per ASCII letter, characters that look like it in folded text: letters of other
// scripts, Latin letters that do not decompose (barred, hooked, turned, small capitals, phonetic),
// and symbols. Characters that NFKC folds (full-width, mathematical, circled letters) are not
// listed, and neither are letters with marks, because marks are dropped before. A character is
// listed under the letter that a disguise is most likely to use it for.
var lookalikes = [...]struct {
	letter byte
	like   string
}{
	{'a', "ɐɑɒαадӕᎪᴀᶏ∀⍺ⱥꓮ\U000102a0"},
	{'b', "ƀƃƅɓʙβбвъьђҍ฿ᏏᏴ᛫ᴃᵬᶀ♭ꓐꞗ"},
	{'c', "¢©ƈȼɕʗͻсҫᏟᴄↄ⊂⸦ꓚꜿꞓꞔ"},
	{'d', "ðđƌȡɖɗəԁԃժძᎠᴅᵭᶁᶑ∂ꓒꝺꟈ"},
	{'e', "ǝɇɘɛɜɝɞʚεезэєҽӡᎬᴇᴈᶒᶓᶔ€℮∈⋴⋿ⱸⱻꓰꬲꬳꬴ"},
	{'f', "ƒϝғբքᵮᶂẝ₣ꓝꜰꝼꞙ"},
	{'g', "ƍǥɠɡɢʛԍգցᏀᏳᵷᵹᶃꓖꝿꞡꟑꬶ"},
	{'h', "ħɥɦʜʮʯнћҕңҥһӈԋիհնᎻⱨꓧꞕ"},
	{'i', "¡ıǀɨɩɪɭιіӏյ\u05c0\u05d5\u05df\u0627\u0661۱\u07ca।Ꭵᴉᶖ∣⏐│┃❘丨ꓲꙇ"},
	{'j', "ȷɉɟʄʝϳјᎫᴊꓙ"},
	{'k', "ĸƙʞκкқҝҟҡӄԟᏦᴋᶄ₭⊦ⱪꓗꝁꝃꝅꞣ"},
	{'l', "£łƚȴɫɬʟᏞᴌᶅ⌊ⱡⳑꓡꝇꝉꞁꞎꬷꬸꬹ"},
	{'m', "ɰɱʍϻмӎᎷᴍᴟᵯᶆ₥ꓟꟺꬺ"},
	{'n', "ƞȵɲɳɴηипӊոռᴎᵰᶇ∩ꓠꞑꞥꬻ"},
	{'o', "σøɔɵοоөօ\u05e1\u0665\u06c1\u06d5०੦ଠ௦౦೦ഠ൦๐໐ဝᴏᴑᴒᴓᴖᶗ⊕⊖⊗⊙○●◦◯ⱺⲟꓳꝋꝍꬽꬾꬿ\U00010292"},
	{'p', "þƥƿρрթᏢᴘᵱᵽᶈ₱⍴ꓑꝑꝓꝕ"},
	{'q', "ɋʠϙԛզꝗꝙꞯ"},
	{'r', "ɍɹɺɻɼɽɾɿʀʁгяᏒᴙᴚᴦᵲᵳᶉⱹⲅꓣꞃꞧꭆꭉꭋꭌꭨ"},
	{'s', "§ƨȿʂѕտᏚᵴᶊẜ₴ꓢꜱꞅꞩꟊ"},
	{'t', "ŧƫƭȶʇʈτтҭԏեᎢᴛᵵ†‡₮⊤⟙ⱦꓔꞇ"},
	{'u', "ʉʋμυцամսᴜᴝᶙ∪ꓴꞹꭎꭒ"},
	{'v', "ʌνѵ\u05d8۷Ꮩᴠᶌ√∨⋁ⱱⱴꓦꝟ"},
	{'w', "ɯωшщѡԝᎳᏔᴡ₩ⱳꓪ"},
	{'x', "×χжхҳӽᕁ᙮ᶍ✕✖✗✘⤫⤬⨯ꓫꭖꭗꭘꭙ"},
	{'y', "¥ƴɏɣʎʏγуүұყჸᎩỿꓬꭚ"},
	{'z', "ƶȥɀʐʑʒᏃᴢᵶᶎⱬꓜ"},
}

// capitalLookalikes lists capitals (and the lunate sigma) that look like another letter than their
// folded form does.
var capitalLookalikes = [...]struct {
	letter byte
	like   string
}{
	{'a', "ΛѦ"}, {'b', "ΒЪ"}, {'c', "ϹϲϾ"}, {'d', "ΔƊ"}, {'e', "ΕΣЗ"}, {'g', "Ԍ"}, {'h', "ΗⱧ"}, {'m', "ΜϺ"},
	{'n', "ΝИ"}, {'o', "ΘΟ"}, {'r', "ЯƦ"}, {'t', "ΤГ"}, {'u', "ՍԱ"}, {'v', "Ѵꓦ"}, {'w', "Ԝ"}, {'y', "ΥΫҮ"}, {'z', "Ζ"},
}

// A letterRange is 26 symbols for the letters a to z that NFKC does not fold.
var letterRanges = [...]rune{
	0x1F150, // negative circled
	0x1F170, // negative squared
	0x1F1E6, // regional indicators
}

var (
	likeLetter  = lookalikeMap(lookalikes[:])
	likeCapital = lookalikeMap(capitalLookalikes[:])
)

func lookalikeMap(table []struct {
	letter byte
	like   string
}) map[rune]byte {
	m := map[rune]byte{}
	for _, row := range table {
		for _, r := range row.like {
			m[r] = row.letter
		}
	}
	return m
}

// letterLike returns the ASCII letter that r looks like.
func letterLike(r rune) (byte, bool) {
	for _, first := range letterRanges {
		if first <= r && r < first+26 {
			return 'a' + byte(r-first), true
		}
	}
	c, ok := likeLetter[r]
	return c, ok
}

// mapCapitals replaces capitals that look like another letter than their folded form.
func mapCapitals(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := likeCapital[r]; ok {
			return rune(c)
		}
		return r
	}, s)
}
