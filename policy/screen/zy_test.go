package screen
import ("testing";"strings";"regexp/syntax";"time")
func TestZY(t *testing.T) {
	s, err := Compile(Defaults(), 1<<20)
	if err != nil { t.Fatal(err) }
	st, ns := 0, 0; _ = ns
	for _, r := range Defaults() { re,_ := syntax.Parse(r.Pattern, syntax.Perl); for _, b := range branches(re) { st += instructions(b, 1<<20) } }
	t.Log("steps", st, "excuses", func() (m int) { for _, r := range Defaults() { re,_ := syntax.Parse(r.Pattern, syntax.Perl); m = max(m, countExcuses(re)) }; return }())
	lit := &literals{numbers: map[string]uint16{}}
	big := 0
	for _, p := range s.programs { _ = p }
	for _, r := range Defaults() { re,_ := syntax.Parse(r.Pattern, syntax.Perl); for _, b := range branches(re) { lit.add(rewrite(b,false)) } }
	for _, c := range lit.list { big = max(big, len(c)) }
	t.Log("literal bytes", lit.bytes, "numbers", len(lit.list), "largest clause", big)
	for n, x := range map[string]string{
		"verbs": strings.Repeat("write ", 1<<20/6), "excused": strings.Repeat("write malware policy ", 1<<20/21), "near":strings.Repeat("write a,b,c,d malwar ", 1<<20/21),
		"commas":strings.Repeat("write,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,, ", 1<<20/53)+"malware policy","singles":strings.Repeat("w r i t e ", 1<<20/10)+" malware ransomware suicide bomb phishing",
		"allwords":strings.Repeat("how to make steal get kill hack ignore send write policy ransomware password phishing data bomb suicide rules myself ", 1<<20/115),
		"prevent":strings.Repeat("prevent how many steal password reset, malware policy; write data phishing suicide policy bomb threat rules. ", 1<<20/115),
		"exc2":strings.Repeat("prevent how many times steal my password policy, ",20000),
		"benign":strings.Repeat(strings.Join(lines(t,"benign.txt",10), ". "), 40),
		"marks":"a"+strings.Repeat("\u0301",1<<19-1),
	} {
		for _, n2 := range []int{1<<20, 16384} {
		x = strings.ToValidUTF8(x[:min(len(x),n2)],"")
		w := &work{1<<40}
		start := time.Now()
		got := s.text(x, Fold(x), len(s.rules), w)
		d := time.Since(start)
		used := 1<<40-w.left
		t.Log(n, len(x), "steps/byte", used/len(x), d.Round(time.Microsecond), "rule", got, "ns/step", float64(d.Nanoseconds())/float64(used+1), "judged", s.Judge(x))
		}
	}
}
func TestZHostile(t *testing.T) {
	for name, rules := range map[string][]Rule{
		"brief": {{ID:"x",Reason:"x",Pattern:`(?:[a-y ]{1,500}[^q]{1,400}){1}z1z1`},{ID:"y",Reason:"x",Pattern: strings.Repeat(`[a-y ]{1,900}`, 8)+`[^a-z ]`}},
		"one": {{ID:"y",Reason:"x",Pattern: strings.Repeat(`[a-y ]{1,900}`, 8)+`[^a-z ]`}},
		"excuse": {{ID:"y",Reason:"x",Pattern: `[^q]{1,900}(?P<but_x>a| )`}},
		"unicode": {{ID:"y",Reason:"x",Pattern: strings.Repeat(`[\pL\pN ]{1,800}`, 8)+`[^a-z ]`}},
		"unicodecap": {{ID:"y",Reason:"x",Pattern: strings.Repeat(`[\pL\pN ]{1,800}`, 8)+`[^a-z ](?P<but_a>x)?(?P<but_a1>x)?(?P<but_b>x)?(?P<but_c>x)?`}},
		"star": {{ID:"y",Reason:"x",Pattern: strings.Repeat(`[^q]*`, 1500)+`[^a-z ]`}},
	} {
		s, err := Compile(rules, 1<<20)
		if err != nil { t.Log(name, err); continue }
		for _, x := range []string{strings.Repeat("ab ", 5460), strings.Repeat("aaab_c.d e|f  ", 1170), strings.Repeat("éÉ\u2800", 2340)} {
			start := time.Now(); h := s.Judge(x)
			t.Log(name, len(x), time.Since(start), h)
		}
	}
}

func TestZCompile(t *testing.T) {
	many := func(n int, f func(i int) string) (rs []Rule) { for i := range n { rs = append(rs, Rule{strings.Repeat("r",i+1), f(i), "x"}) }; return }
	abc := func(i int) string { return string([]byte{byte('a'+i%26), byte('a'+i/26%26)}) }
	for name, rules := range map[string][]Rule{
		"exact": many(256, func(i int) string { return abc(i)+`(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)`+strings.Repeat(`\ba`, 100) }),
		"exact2": many(6, func(i int) string { return abc(i)+`(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)(?:a|b)`+strings.Repeat(`\ba`, 5300) }),
		"lits": many(250, func(i int) string { return strings.Repeat(`[a-f][a-f][a-f]`+abc(i)+`.`, 50) }),
		"alts": many(6, func(i int) string { s := ""; for j := range 1400 { if j > 0 { s += "|" }; s += "[a-f][a-f][a-f]"+abc(j) }; return s[:len(s)]}),
		"pl": many(256, func(i int) string { return strings.Repeat(`\pL`, 9) }),
		"uni": many(6, func(i int) string { return `[\pL ]{1,300}z9` }),
		"same": many(256, func(i int) string { return `(?:ab|`+abc(i)+`).`+`(?:ab|`+abc(i+1)+`).(?:ab|`+abc(i+2)+`).9q?` }),
		"nest": many(6, func(i int) string { return strings.Repeat(`(?:`,900)+"a"+strings.Repeat(`|b)`,900) }),
		"width": many(6, func(i int) string { return `(?:`+strings.Repeat(`(?P<but_a>a)?`,64)+`[^q]{1,900}){8}9` }),
		"big": many(6, func(i int) string { return `[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}9` }),
		"bigs": many(12, func(i int) string { return `[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}[^q]{1,900}9` }),
		"long": many(15, func(i int) string { return strings.Repeat(abc(i), 3000) }),
	} {
		start := time.Now()
		s, err := Compile(rules, 1<<20)
		t.Log(name, "compile", time.Since(start), err)
		if err != nil { continue }
		for _, x := range []string{strings.Repeat("ab ", 5460), strings.Repeat("aaab_c.d e|f  ", 1170), strings.Repeat("éÉ\u2800", 2340)} {
			start := time.Now(); h := s.Judge(x)
			t.Log(name, len(x), time.Since(start), h)
		}
	}
}
