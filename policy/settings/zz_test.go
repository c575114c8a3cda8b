package settings
import ("testing";"time";"fmt";"os";"path/filepath";"strings";"strconv")
func TestZZ(t *testing.T){
 names,_:=filepath.Glob(os.Getenv("CORP")+"/*")
 fmt.Println(len(names))
 for _,n:=range names { b,_:=os.ReadFile(n); s:=strings.SplitN(string(b),"\n",2)[1]; s=strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(s),"[]byte("),")"); u,err:=strconv.Unquote(s); if err!=nil {continue}
  t0:=time.Now(); Parse("c",[]byte(u)); if d:=time.Since(t0); d>20*time.Millisecond {fmt.Println(n,len(u),d)}}
 var b strings.Builder; b.WriteString("version: 1\n"); for i:=0;i<10000;i++{fmt.Fprintf(&b,"k%d: v\n",i)}
 for name,s:=range map[string]string{"kv":b.String(),"x":strings.Repeat("x",MaxFileBytes),"sp":"a:"+strings.Repeat(" ",MaxFileBytes-10)+"b","nl":strings.Repeat("\n \n",MaxFileBytes/3),"plainlines":"a: b\n"+strings.Repeat("  c\n",MaxFileBytes/4-10),"hash":strings.Repeat("#\n",MaxFileBytes/2),"hash2":"a: b\n"+strings.Repeat("  #x\n",MaxFileBytes/5-5),"fold":"a: >\n"+strings.Repeat("  c\n",MaxFileBytes/4-10),"dq":"a: \""+strings.Repeat("\\n",MaxFileBytes/2-10)+"\"","dq2":"a: \""+strings.Repeat("x\n ",MaxFileBytes/3-10)+"\"","lit":"a: |\n"+strings.Repeat("  c\n",MaxFileBytes/4-10), "colons":strings.Repeat("a:",MaxFileBytes/2),"commas":"a: "+strings.Repeat(",",MaxFileBytes/2), "q":strings.Repeat("''",MaxFileBytes/2), "dashes":"a: "+strings.Repeat("-",MaxFileBytes-10),"key":strings.Repeat("x",MaxFileBytes-10)+": y","sp2":strings.Repeat(" ",MaxFileBytes-2)+"a","multi":strings.Repeat("a b ",MaxFileBytes/4)}{
  t0:=time.Now(); _,err:=Parse("c",[]byte(s)); es:=fmt.Sprint(err); if len(es)>80{es=es[:80]}; fmt.Println(name,time.Since(t0),es)}
}
