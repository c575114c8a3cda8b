package settings
import ("testing";"fmt";"os")
func TestSmoke(t *testing.T){
 src,_:=os.ReadFile("/tmp/exp/issue.yaml")
 f,err:=Parse("pgfsm.yaml",src); fmt.Println(err)
 if f!=nil {fmt.Println(string(f.root.json()))}
 l,err:=Load("cfg/pgfsm.yaml",func(p string)([]byte,error){fmt.Println("open",p);switch p{case "cfg/pgfsm.yaml":return src,nil;case "cfg/config/allowlist.json":return []byte(`{"docs":["a","b"],"x":[]}`),nil;case "cfg/schemas/policy-entry.json":return []byte(`{"type":"object"}`),nil};return nil,os.ErrNotExist},Overrides{})
 fmt.Println(err); if l!=nil {fmt.Printf("%+v\n%q\n",l.Servers,l.Warnings)
 _,_,err=l.Resolve(os.LookupEnv,os.ReadFile);fmt.Println(err)}
 src,_=os.ReadFile("/tmp/exp/bad.yaml")
 _,err=Parse("pgfsm.yaml",src); fmt.Println(err)
}
