package settings
import ("testing";"fmt";"go.yaml.in/yaml/v4")
func same(n *node, y *yaml.Node) string {
 if y.Kind==yaml.AliasNode {return "alias"}
 switch n.kind {
 case isMap: if y.Kind!=yaml.MappingNode || len(y.Content)!=2*len(n.members) {return fmt.Sprintf("map %d vs kind %v %d",len(n.members),y.Kind,len(y.Content)/2)}
  for i,m:=range n.members { if y.Content[2*i].Value!=m.key {return fmt.Sprintf("key %q vs %q",m.key,y.Content[2*i].Value)}; if m.at.line!=y.Content[2*i].Line||m.at.col!=y.Content[2*i].Column {return fmt.Sprintf("place of %q %v vs %d:%d",m.key,m.at,y.Content[2*i].Line,y.Content[2*i].Column)}; if s:=same(m.value,y.Content[2*i+1]);s!=""{return s}}
 case isList: if y.Kind!=yaml.SequenceNode || len(y.Content)!=len(n.items) {return "list"}
  for i,m:=range n.items { if s:=same(m,y.Content[i]);s!=""{return s}}
 default: if y.Kind!=yaml.ScalarNode {return "scalar"}
  if n.kind!=isNull && n.text!=y.Value {return fmt.Sprintf("%q vs %q",n.text,y.Value)}
  if n.kind==isNull && y.Tag!="!!null" {return fmt.Sprintf("null vs %q",y.Value)}
 }
 return ""
}
func FuzzDiff(f *testing.F){
 for _,s:=range seeds(f){f.Add(s)}
 f.Fuzz(func(t *testing.T, b []byte){
	src, clean := checkText("c.yaml", b)
	if clean == nil { return }
	root := readYAML(src, clean)
	if root == nil || len(src.faults) > 0 { return }
  if _,perr:=Parse("c",b); perr!=nil {return}
	var y yaml.Node
	if err:=yaml.Unmarshal(clean,&y); err!=nil { t.Fatalf("v4 refuses: %v\n%s\n%s",err,clean,root.json()) }
	if len(y.Content)==0 {t.Fatalf("v4 empty %q %s",clean,root.json())}
	if s:=same(root,y.Content[0]); s!="" {t.Fatalf("%s\n%q\n%s",s,clean,root.json())}
 })
}
