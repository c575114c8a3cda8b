package ctrl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// An argument is a use of one argument of the call.
type argument struct {
	name      string
	optional  bool        // args.get: it may be missing
	otherwise syntax.Expr // what args.get gives then; nil is None
}

// asArgument reports whether e is the value of an argument and nothing else.
func (t *translator) asArgument(e syntax.Expr) (argument, bool) {
	switch v := bare(e).(type) {
	case *syntax.Ident:
		before := len(t.noted)
		x, err := t.name(v.Name)
		t.noted = t.noted[:before]
		return argument{name: v.Name}, err == nil && x.kind == isDynamic
	case *syntax.IndexExpr:
		name, ok := text(v.Y)
		return argument{name: name}, ok && isArgs(v.X)
	case *syntax.CallExpr:
		get, ok := v.Fn.(*syntax.DotExpr)
		if !ok || !isArgs(get.X) || get.Name.Name != "get" || len(v.Args) < 1 || len(v.Args) > 2 {
			return argument{}, false
		}
		name, ok := text(v.Args[0])
		a := argument{name: name, optional: true}
		if len(v.Args) == 2 {
			a.otherwise = v.Args[1]
		}
		return a, ok
	}
	return argument{}, false
}

func isArgs(e syntax.Expr) bool {
	x, ok := bare(e).(*syntax.Ident)
	return ok && x.Name == "args"
}

// noteUse notes what is to be said of each use of an argument.
func (t *translator) noteUse(e syntax.Expr, a argument) error {
	switch bare(e).(type) {
	case *syntax.IndexExpr:
		t.failsThere("args[…]")
	case *syntax.CallExpr:
		t.failsThere("args.get")
	}
	if t.place == inThreshold {
		return errors.New("only score has a meaning here, not arguments")
	}
	if a.optional {
		t.note(WrongType, fmt.Sprintf("the argument %q may be of another type", a.name),
			"the default counts only where it is missing; of another type than is needed it makes the expression fail")
		return nil
	}
	t.argument(a.name)
	return nil
}

func (t *translator) subscript(v *syntax.IndexExpr) (term, error) {
	a, ok := t.asArgument(v)
	if !ok {
		return term{}, errors.New("only args['NAME'] has a subscript")
	}
	return term{src: reference(a.name), prec: atom, kind: isDynamic}, t.noteUse(v, a)
}

// get translates args.get('x', d) to has(args.x) ? args.x : d.
func (t *translator) get(v *syntax.CallExpr, a argument) (term, error) {
	if err := t.noteUse(v, a); err != nil {
		return term{}, err
	}
	d := term{src: "null", prec: atom}
	if a.otherwise != nil {
		var err error
		if d, err = t.value(a.otherwise); err != nil {
			return term{}, err
		}
	}
	return term{src: presence(a.name) + " ? " + reference(a.name) + " : " + d.in(choice), prec: choice,
		kind: isDynamic}, nil
}

// isFallback reports whether v is `x or d`, meaning the value d where x is nothing, and not a condition.
func (t *translator) isFallback(v *syntax.BinaryExpr) bool {
	if v.Op != syntax.OR {
		return false
	}
	switch d := bare(v.Y).(type) {
	case *syntax.Literal, *syntax.ListExpr, *syntax.TupleExpr, *syntax.UnaryExpr:
		u, signed := d.(*syntax.UnaryExpr)
		return !signed || u.Op != syntax.NOT
	case *syntax.Ident:
		if _, ok := t.asArgument(v.X); ok {
			return d.Name == "False" || d.Name == "None"
		}
	}
	return false
}

// fallback translates `x or d`.
func (t *translator) fallback(v *syntax.BinaryExpr) (term, error) {
	d, err := t.value(v.Y)
	if err != nil {
		return term{}, err
	}
	a, ok := t.asArgument(v.X)
	if !ok {
		x, err := t.value(v.X)
		if err != nil || !x.kind.isNumber() || !d.kind.isNumber() {
			return term{}, errors.Join(err, errors.New("`x or d` is translated for arguments and numbers"))
		}
		if x, err = x.double(); err != nil {
			return term{}, err
		}
		if d, err = d.double(); err != nil || isZero(d) {
			return x, err
		}
		return conditional(binary(x, "!=", term{src: "0.0", prec: atom}, relation, isBoolean), x, d), nil
	}
	if err := t.noteUse(v.X, a); err != nil {
		return term{}, err
	}
	ref := reference(a.name)
	is := []string{ref + " != null"}
	if a.optional {
		is = slices.Insert(is, 0, presence(a.name))
		if err := t.sameDefault(a, d); err != nil {
			return term{}, err
		}
	}
	if !isEmpty(d) { // what is empty there is d
		is = append(is, ref+" != 0", ref+" != ''", ref+" != false")
	}
	return term{src: strings.Join(is, " && ") + " ? " + ref + " : " + d.in(choice), prec: choice, kind: isDynamic}, nil
}

// sameDefault refuses args.get('x', c) or d where c is neither empty nor d: which of both counts depends on why.
func (t *translator) sameDefault(a argument, d term) error {
	if a.otherwise == nil {
		return nil
	}
	c, err := t.value(a.otherwise)
	if err == nil && c.src != d.src && !isEmpty(c) {
		err = errors.New("two different defaults for one argument")
	}
	return err
}

func isZero(t term) bool { return t.src == "0" || t.src == "0.0" }

// isEmpty reports whether Python takes a literal for false.
func isEmpty(t term) bool {
	return isZero(t) || t.src == "''" || t.src == "false" || t.src == "null" || t.src == "[]"
}

func (t *translator) attribute(v *syntax.DotExpr) (term, error) {
	if x, ok := v.X.(*syntax.Ident); ok && t.place == inPolicy && x.Name == "risk" && v.Name.Name == "mode" {
		return term{src: "risk.mode", prec: atom, kind: isString}, nil
	}
	if isArgs(v.X) {
		return term{}, fmt.Errorf("args.%s is no argument in Python; write args.get('%s')", v.Name.Name, v.Name.Name)
	}
	return term{}, fmt.Errorf("ctrl knows nothing that is called .%s", v.Name.Name)
}

func (t *translator) call(v *syntax.CallExpr) (term, error) {
	for _, arg := range v.Args {
		if u, ok := arg.(*syntax.UnaryExpr); ok && (u.Op == syntax.STAR || u.Op == syntax.STARSTAR) {
			return term{}, errors.New("* and ** in a call are not translated")
		}
		if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			return term{}, errors.New("named arguments of a function are not translated")
		}
	}
	switch fn := v.Fn.(type) {
	case *syntax.DotExpr:
		if a, ok := t.asArgument(v); ok {
			return t.get(v, a)
		}
		return t.method(fn, v.Args)
	case *syntax.Ident:
		if slices.Contains(t.vars, fn.Name) || slices.Contains(t.refused, fn.Name) {
			return term{}, fmt.Errorf("the variable %s takes the place of the function", fn.Name)
		}
		return t.function(fn.Name, v.Args)
	}
	return term{}, errors.New("this call is not translated")
}

func (t *translator) method(fn *syntax.DotExpr, args []syntax.Expr) (term, error) {
	name := fn.Name.Name
	known := map[string]string{"lower": "lowerAscii", "startswith": "startsWith", "endswith": "endsWith"}[name]
	if known == "" || isArgs(fn.X) {
		return term{}, fmt.Errorf("there is no method %s", name)
	}
	t.failsThere("." + name)
	x, err := t.value(fn.X)
	if err == nil && x.kind != isString && x.kind != isDynamic {
		err = fmt.Errorf("%s has no method %s", valueNames[x.kind], name)
	}
	if err != nil {
		return term{}, err
	}
	if name == "lower" {
		if len(args) != 0 {
			return term{}, errors.New("lower takes nothing")
		}
		t.note(Rounding, "lower changes the letters of every script in Python", "lowerAscii changes A to Z only")
		return term{src: x.in(atom) + "." + known + "()", prec: atom, kind: isString}, nil
	}
	if len(args) != 1 {
		return term{}, fmt.Errorf("%s with one text is translated, nothing else", name)
	}
	what, err := t.value(args[0])
	if err == nil && what.kind != isString && what.kind != isDynamic {
		err = fmt.Errorf("%s takes a text, not %s", name, valueNames[what.kind])
	}
	return term{src: x.in(atom) + "." + known + "(" + what.src + ")", prec: atom, kind: isBoolean}, err
}

// function translates a call of a function by name.
func (t *translator) function(name string, args []syntax.Expr) (term, error) {
	cel, known := functions[name]
	switch {
	case known && cel == "":
		return term{}, fmt.Errorf("there is no %s here; write thresholds", name)
	case known:
		if t.place != inPolicy && t.place != inThreshold {
			t.note(ShadowedName, fmt.Sprintf("in ctrl, an argument called %s takes the place of the function", name),
				"a function is one, whatever the arguments are called")
		}
		return t.numeric(name, cel, args)
	case name == "len" || name == "int" || name == "float" || name == "str":
		t.failsThere("the function " + name)
		if len(args) != 1 {
			return term{}, fmt.Errorf("%s with one value is translated, nothing else", name)
		}
		x, err := t.value(args[0])
		if err != nil {
			return term{}, err
		}
		return t.convert(name, x)
	}
	return term{}, fmt.Errorf("there is no function %s", name)
}

func (t *translator) numeric(name, cel string, args []syntax.Expr) (term, error) {
	many := name == "max" || name == "min"
	if many && len(args) < 2 || !many && len(args) != 1 {
		return term{}, fmt.Errorf("%s with %d values is not translated", name, len(args))
	}
	parts, err := t.each(args, t.double)
	sources := make([]string, len(parts))
	for i, part := range parts {
		sources[i] = part.src
	}
	if name == "round" {
		t.note(Rounding, "round(2.5) is 2 in Python", "math.round(2.5) is 3")
	}
	return term{src: cel + "(" + strings.Join(sources, ", ") + ")", prec: atom, kind: isDouble}, err
}

func (t *translator) convert(name string, x term) (term, error) {
	call := func(fn string) string { return fn + "(" + x.src + ")" }
	switch {
	case name == "len" && (x.kind == isString || x.kind == isDynamic || x.kind == isSequence):
		return term{src: call("size"), prec: atom, kind: isInteger}, nil
	case name == "str" && (x.kind == isString || x.kind == isDynamic):
		t.note(Rounding, "str(1.0) is '1.0' in Python, str(True) is 'True'", "string(1.0) is '1', string(true) is 'true'")
		return term{src: call("string"), prec: atom, kind: isString}, nil
	case name == "int" && (x.kind == isString || x.kind == isDynamic || x.kind.isNumber()):
		return term{src: call("int"), prec: atom, kind: isInteger}, nil
	case name == "float" && (x.kind == isString || x.kind == isDynamic || x.kind.isNumber()):
		return term{src: call("double"), prec: atom, kind: isDouble}, nil
	}
	return term{}, fmt.Errorf("%s of %s is not translated", name, valueNames[x.kind])
}
