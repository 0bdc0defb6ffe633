"""Texts that hold a credential, and texts that only look as if: what the masking is measured on.

A text is written with its secret between « and », and with what is drawn by lot between ‹ and ›:
`‹an36›` are 36 letters and digits. So no scanner takes this file for a leak, and a drawn value is
the same in every run.

The formats are those that providers document and that gitleaks (its public list of rules) knows;
the contexts are those in which people write them. Every second one is for tuning, the others are
held out: they are only measured. Both halves were written before the rules.
"""

import random
import re
import string
from dataclasses import dataclass
from typing import NamedTuple

_LETTERS, _DIGITS = string.ascii_letters, string.digits
_ALPHABETS = {
    "an": _LETTERS + _DIGITS,
    "lo": string.ascii_lowercase + _DIGITS,
    "up": string.ascii_uppercase + _DIGITS,
    "al": string.ascii_lowercase,
    "AL": string.ascii_uppercase,
    "le": _LETTERS,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "dig": _DIGITS,
    "bt": string.ascii_uppercase + "234567",
    "bs": _LETTERS + _DIGITS + "+/",
    "url": _LETTERS + _DIGITS + "_-",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_DRAWN = re.compile(r"‹([A-Za-z]+)(\d+)›")


class Text(NamedTuple):
    """A text and the secret in it, if there is one."""

    text: str
    secret: str = ""


@dataclass(frozen=True)
class Half:
    """What is tuned on, or what is only measured."""

    credentials: list[Text]
    lookalikes: list[Text]


def texts_of(written: str) -> list[Text]:
    """The texts in a block of lines; what follows a line beginning with `|` belongs to it."""
    lines = [line.replace("\n|", "\n") for line in re.split(r"\n(?!\|)", written.strip("\n"))]
    return [_text_of(line) for line in lines if line.strip() and not line.startswith("## ")]


def _text_of(written: str) -> Text:
    drawn = _DRAWN.sub(_draw(random.Random(written)), written)
    before, mark, rest = drawn.partition("«")
    secret, _, behind = rest.partition("»")
    if not mark:
        return Text(drawn + "\n")
    return Text(f"{before}{secret}{behind}\n", secret)


def _draw(chance: random.Random):
    def draw(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2])
        if kind == "uuid":
            return "-".join(
                "".join(chance.choices("0123456789abcdef", k=n)) for n in (8, 4, 4, 4, 12)
            )
        if kind == "pem":  # so many lines of 64 characters
            return "\n".join("".join(chance.choices(_ALPHABETS["bs"], k=64)) for _ in range(count))
        return "".join(chance.choices(_ALPHABETS[kind], k=count))

    return draw


_CREDENTIALS = r"""
## tokens with a mark of their own
aws_access_key_id = «AKIA‹bt16›»
key="«ASIA‹bt16›»",
client = boto3.client("s3", "«AKIA‹bt16›»")
AWS_BEARER_TOKEN_BEDROCK=«ABSK‹bs112›=»
"appsync": "«da2-‹lo26›»"
mws_auth: «amzn.mws.‹uuid1›»
git clone https://x:«ghp_‹an36›»@github.com/a/b
GH = «gho_‹an36›»
see «ghu_‹an36›» for the user
::add-mask::«ghs_‹an36›»
refresh «ghr_‹an36›»
gh auth login --with-token «github_pat_‹an22›_‹an59›»
- «glpat-‹url20›»
deploy = '«gldt-‹url20›»'
gitlab-runner register --token «glrt-‹url20›»
trigger: «glptt-‹hex40›»
feed «glft-‹url20›»
scim «glsoat-‹url20›»
ci job «glcbt-64_‹url20›»
mail «glimt-‹url25›»
agent.token: «glagent-‹url50›»
gloas='«gloas-‹hex64›»'
registration_token = "«GR1348941‹url20›»"
unleash «glffct-‹url20›»
SLACK=«xoxb-‹dig12›-‹dig12›-‹an24›»
slack_user = "«xoxp-‹dig12›-‹dig12›-‹dig12›-‹hex32›»"
app_level: «xapp-1-A‹up10›-‹dig13›-‹hex64›»
cfg «xoxe.xoxp-1-‹an146›»
rot «xoxe-1-‹an146›»
legacy «xoxs-‹dig10›-‹dig10›-‹dig10›-‹hex10›»
curl -X POST https://hooks.slack.com/services/«T‹up8›/B‹up10›/‹an24›»
stripe.api_key = "«sk_live_‹an24›»"
Stripe('«rk_live_‹an99›»')
stripe test «sk_test_‹an99›»
endpointSecret = "«whsec_‹an32›»"
maps.js?key=«AIza‹url35›»
firebase: { apiKey: "«AIza‹url35›»" }
"client_secret":"«GOCSPX-‹url28›»"
Authorization: Bearer «ya29.‹url120›»
gdrive «1//0‹url60›»
DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=«‹bs86›==»;EndpointSuffix=core.windows.net
Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«‹bs43›=»
azure_client «‹an3›8Q~‹url34›»
https://acc.blob.core.windows.net/c/b?sv=2022-11-02&se=2025-01-01&sig=«‹an43›%3D»
pat «‹an76›AZDO‹an4›»
x-functions-key: «‹url44›AzFu‹url6›==»
redis key «‹an33›AzCa‹an6›Q=»
openai.api_key = "«sk-‹an20›T3BlbkFJ‹an20›»"
OPENAI «sk-proj-‹url74›T3BlbkFJ‹url74›»
o = OpenAI("«sk-svcacct-‹url58›T3BlbkFJ‹url58›»")
admin «sk-admin-‹url58›T3BlbkFJ‹url58›»
anthropic: «sk-ant-api03-‹url93›AA»
boss «sk-ant-admin01-‹url93›AA»
HF = "«hf_‹le34›»"
orgs «api_org_‹le34›»
perplexity="«pplx-‹an48›»"
groq: «gsk_‹an52›»
grok «xai-‹an80›»
replicate «r8_‹an37›»
openrouter «sk-or-v1-‹hex64›»
smith «lsv2_pt_‹hex32›_‹hex10›»
tavily("«tvly-dev-‹an32›»")
pinecone = «pcsk_‹an6›_‹an63›»
voices «sk_‹hex48›»
cerebras «csk-‹lo48›»
//registry.npmjs.org/:_authToken=«npm_‹an36›»
twine upload -u __token__ -p «pypi-AgEIcHlwaS5vcmc‹url80›»
gem push --key «rubygems_‹hex48›»
nuget push -k «oy2‹lo43›»
cargo login «cio‹an32›»
lein deploy «CLOJARS_‹hex60›»
jfrog «AKCp‹an69›»
art_ref: «cmVmdGtu‹an56›»
docker login -u me -p «dckr_pat_‹url27›»
org «dckr_oat_‹url32›»
credentials "app.terraform.io" { token = "«‹an14›.atlasv1.‹url66›»" }
pulumi login «pul-‹hex40›»
vault login «hvs.‹url95›»
batch «hvb.‹url150›»
doppler run --token «dp.pt.‹an43›»
svc «dp.st.prd.‹an43›»
OP_SERVICE_ACCOUNT «ops_eyJ‹bs250›»
1p account «A3-‹up6›-‹up11›-‹up5›-‹up5›-‹up5›»
# age
|«AGE-SECRET-KEY-1‹bech58›»
sonar.login=«sqp_‹hex40›»
sonar user «squ_‹hex40›»
circle «CCIPAT_‹an22›_‹hex40›»
bk «bkua_‹hex40›»
harness «pat.‹url22›.‹hex24›.‹an20›»
octo «API-‹up26›»
sentry-cli --auth «sntryu_‹hex64›»
sentry org «sntrys_eyJ‹bs120›=_‹bs43›»
NR «NRAK-‹up27›»
browser «NRJS-‹hex19›»
grafana «glsa_‹an32›_‹hex8›»
grafana cloud «glc_eyJ‹bs120›=»
dynatrace «dt0c01.‹bt24›.‹bt64›»
prefect cloud login -k «pnu_‹lo36›»
airtable «pat‹an14›.‹hex64›»
notion «ntn_‹dig11›‹an35›»
old notion "«secret_‹an43›»"
linear «lin_api_‹an40›»
jira «ATATT3xFfGF0‹url180›=‹HEX8›»
bitbucket «ATBB‹an32›»
trello «ATTA‹hex64›‹HEX8›»
figma «figd_‹url40›»
postman «PMAK-‹hex24›-‹hex34›»
hubspot «pat-na1-‹uuid1›»
mailchimp «‹hex32›-us12»
mailgun «key-‹hex32›»
SendGridAPIClient("«SG.‹url22›.‹url43›»")
brevo «xkeysib-‹hex64›-‹an16›»
twilio = Client("«SK‹hex32›»")
bot «‹dig10›:AA‹url33›»
client.run("«MT‹an24›.‹url6›.‹url38›»")
https://discord.com/api/webhooks/«‹dig19›/‹url68›»
fb «EAA‹an160›»
X «AAAAAAAAAAAAAAAAAAAAA‹an60›%3D‹an40›»
dropbox «sl.‹url136›»
shop «shpat_‹hex32›»
shop app «shpca_‹hex32›»
shared «shpss_‹hex32›»
private app «shppa_‹hex32›»
square «sq0atp-‹url22›»
square oauth «sq0csp-‹url43›»
paypal «access_token$production$‹lo16›$‹hex32›»
plaid «access-production-‹uuid1›»
flutter «FLWSECK-‹hex32›-X»
razor «rzp_live_‹an14›»
do «dop_v1_‹hex64›»
do refresh «dor_v1_‹hex64›»
heroku «HRKU-AA‹url58›»
netlify «nfp_‹an36›»
fly «fo1_‹url43›»
FLY «FlyV1 fm2_‹bs120›»
render «rnd_‹an28›»
cloudflare ca «v1.0-‹hex24›-‹hex146›»
aliyun «LTAI‹an20›»
qcloud «AKID‹an32›»
yc «AQVN‹url36›»
yandex passport «y0_‹url55›»
databricks configure --token «dapi‹hex32›»
ps «pscale_tkn_‹url43›»
ps pw «pscale_pw_‹url43›»
supabase «sbp_‹hex40›»
supabase new «sb_secret_‹url31›»
neon «napi_‹lo64›»
mapbox «sk.eyJ‹an84›.‹url22›»
easypost «EZAK‹an54›»
frame.io «fio-u-‹url64›»
shippo «shippo_live_‹hex40›»
readme «rdme_‹lo70›»
typeform «tfp_‹url59›»
contentful «CFPAT-‹url43›»
lob «live_‹hex35›»
oc login --token=«sha256~‹url43›»
composer «packagist_ack_‹hex64›»
sourcegraph «sgp_‹hex16›_‹hex40›»
maxmind «‹an6›_‹an29›_mmk»
adafruit «aio_‹an28›»
adobe «p8e-‹hex32›»
polar «polar_oat_‹an43›»
resend «re_‹an8›_‹an24›»
tailscale up --authkey «tskey-auth-‹an12›-‹an32›»
ngrok api «ak_‹an26›»
duffel «duffel_live_‹url43›»
telegram url https://api.telegram.org/bot«‹dig9›:AAF‹url32›»/getMe
clickhouse «4b1d‹an38›»
workos «sk_live_‹an40›»
intra42 «s-s4t2ud-‹hex64›»
okta «00‹url40›» for SSWS
vercel «vcp_‹an56›»
launchdarkly «sdk-‹uuid1›»
buildkite agent «bkaj_‹an36›»
jwt «eyJ‹url30›.eyJ‹url70›.‹url43›»
cookie: session=«eyJ‹url20›.eyJ‹url40›.‹url86›»; Path=/

## values of names, in the formats of configuration
DB_PASSWORD=«h7Rt2kLq»
password = «w9!xQ2mm»
[database]
|user = app
|password = «Zk3-vv81pQ»
spring.datasource.password=«Tr0ub4dor»
mail.smtp.password: «x8Kp2wQz»
db:
|  user: app
|  password: «n4Vd8Lq2x»
      - POSTGRES_PASSWORD=«b9Tq4mZx»
      POSTGRES_PASSWORD: «b8Xq4nZx»
      MYSQL_ROOT_PASSWORD: "«r00tP4ss!»"
ENV API_TOKEN=«‹an32›»
ENV API_TOKEN «‹an31›»
ARG NPM_AUTH_TOKEN=«‹lo36›»
export SECRET_KEY=«‹an50›»
export AWS_SECRET_ACCESS_KEY=«‹bs40›»
aws_secret_access_key = «‹bs40›»
aws_session_token = «‹bs200›»
secretAccessKey: '«‹bs40›»',
secret_key: «‹hex64›»
secret_key_base: «‹hex128›»
SECRET_KEY = '«django-insecure-‹an50›»'
SECRET_KEY = "«#z6$x&‹lo12›!k@q(=v%‹lo20›»"
app.config["SECRET_KEY"] = "«‹hex32›»"
$config['encryption_key'] = '«‹an32›»';
API_KEY: «‹hex32›»
api-key: "«‹an24›»"
apiKey = «‹hex40›»
x-api-key: «‹an40›»
X-Auth-Token: «‹hex32›»
"password": "«Pf7!kk20sA»",
"db_password" : "«qP8wLz33»"
{\"apiKey\": \"«‹an32›»\"}
'passwd' => '«Kq8$vT2m»',
"accessToken":"«‹an48›»"
"refresh_token": "«‹url64›»"
"client_secret": "«‹an32›»"
  clientSecret: «‹an40›»
consumer_secret = "«‹an50›»"
ACCESS_TOKEN_SECRET='«‹an45›»'
TWILIO_AUTH_TOKEN=«‹hex32›»
TwilioClient.init(sid, authToken="«‹hex32›»")
DATADOG_API_KEY=«‹hex32›»
dd_app_key: «‹hex40›»
HEROKU_API_KEY=«‹uuid1›»
CODECOV_TOKEN: «‹uuid1›»
SNYK_TOKEN=«‹uuid1›»
cloudflare_api_token = "«‹url40›»"
WANDB_API_KEY=«‹hex40›»
algolia: {appId: 'X', adminKey: '«‹hex32›»'}
COHERE_API_KEY="«‹an40›»"
MISTRAL_API_KEY=«‹an32›»
DEEPSEEK_API_KEY=«sk-‹hex32›»
signing_key: "«‹bs43›=»"
ENCRYPTION_KEY=«‹bs43›=»
master.key: «‹hex32›»
JWT_SECRET=«‹an40›»
jwt.secret=«9kQ-zz8Lm2-xT»
session_secret: "«kx92!lLq0»"
COOKIE_SECRET «‹hex32›»
hmac_secret := "«‹hex40›»"
webhookSecret: `«‹an32›»`
ansible_ssh_pass=«Vq8!tz2P»
ansible_become_password: «Lm3$kk9z»
host ansible_host=10.0.0.4 ansible_password=«8Zu-kw2Qx»
requirepass «f00bAr92xq»
bind_password = "«Nx82kQlw»"
ldap.bindPw=«Gk7wq2Zx»
keystorePassword="«st0reP4ss»"
storePassword=«k8Zw2nPq»
keyPassword = «aW93kxZq»
-Djavax.net.ssl.keyStorePassword=«t7Kw2qLz»
signing.password=«Bv62qPlz»
sonatypePassword=«Wd83kLpq»
_authToken=«‹uuid1›»
//npm.corp/:_password="«‹bs23›=»"
_auth = «‹bs27›=»
machine api.heroku.com login me@x.io password «‹uuid1›»
machine github.com
|  login me
|  password «‹an40›»
*:5432:*:app:«p8Zk2Lqx» # .pgpass password
passphrase: "«vT8-kq2LzPw»"
PRIVATE_KEY=«0x‹hex64›»
ETH_PRIVATE_KEY="«‹hex64›»"
mnemonic-password: «9xTz!2kqL»
smtp_pass = "«Mq7zk2Lx»"
SMTP_PASS=«Rk29zXwq»
EMAIL_HOST_PASSWORD = '«zkqm wpvd xnhl rtgb»'
pass: '«7hKq!2Lz»',
pwd="«Lk2m9zQx»"
Pwd=«Jk92!mzQ»;Database=x
Server=db;Database=x;User Id=sa;Password=«Yk8!pp2Lq»;
"ConnectionString": "Server=.;Uid=sa;Pwd=«Zq72mLkx»;"
jdbc.password = «c0rR3ctH0rse»
hibernate.connection.password «Kw82zLpq»
TF_VAR_db_password="«Kv93zQ!x»"
variable "db_password" { default = "«Gq82zKlw»" }
db_pass=«u83Kz!wq»
token: «‹hex40›»
token = '«‹lo32›»'
TOKEN=«‹url43›»
bot_token = "«‹an59›»"
DISCORD_TOKEN=«‹an24›.‹an6›.‹an27›»
auth_token => "«‹an32›»",
(auth-token "«‹lo40›»")
:secret_token => '«‹hex128›»'
let apiSecret: String = "«‹an32›»"
val apiKey: String = "«‹an36›»"
private static final String PASSWORD = "«S3cr!tPa»";
static const char *password = "«wf9kQz2L»";
#define WIFI_PASSWORD "«mYw1f!88»"
const token string = "«‹an32›»"
var Password = @"«Hk8!zz2q»";
password := "«kZ82qLwx»"
conn = connect(host="db", user="app", password="«Bq82zKlw»")
conn = psycopg2.connect("dbname=a user=b password=«Wz82qKlp»")
mysql.createConnection({host: 'x', password: '«Ql82zKwp»'})
new PDO($dsn, 'root', password: '«Xl82zKwq»')
auth=("admin", "«G7!kkz2Lq»")
auth = HTTPBasicAuth('ada', '«V7kz!2Lqp»')
.setPassword("«T7kz!2Lqp»")
user.password = '«N7kz2Lqp!»'
setenv PASSWORD «zK82qLwp!»
set PASSWORD=«wK82qLzp»
$env:API_KEY = "«‹an32›»"
[Environment]::SetEnvironmentVariable("API_KEY", "«‹an32›»")
ConvertTo-SecureString "«pK82!Lzpq»" -AsPlainText -Force
os.environ["OPENAI_API_KEY"] = "«‹an40›»"
process.env.SECRET = '«‹hex24›»'
fastlane: FASTLANE_PASSWORD: «abcd-efgh-ijkl-‹al4›»
secrets:
|  slack: «https://hooks.slack.com/workflows/‹an40›»
password="«пароль7Zk2»"
password: "«Qz8#kl2m»"
api_key=«‹hex32›»&format=json
https://api.example.com/v1?api_key=«‹hex32›»&q=x
https://maps.x.io/?access_token=«‹an40›»
GET /feed?token=«‹lo32›» HTTP/1.1
https://x.io/cb#access_token=«‹url60›»&state=1
private_token: «‹url20›»
X-Gitlab-Token: «‹url24›»
Private-Token: «‹url22›»
"secret": "«‹bs44›»"
client-key: «‹an40›»
shared_secret = "«Rw82!Kzlq0»"
pre_shared_key "«q9Z!kk2LLx»"
psk="«correct9Horse»"
wpa_passphrase=«Zk82!lwpQ»
snmp-server community «zK82lwpQ»
enable secret 5 «$1$‹an4›$‹an22›»
username admin password 7 «‹HEX18›»
root:«$6$‹an8›$‹an86›»:19000:0:99999:7:::
ada:«$2y$10$‹an53›»
ada:«$apr1$‹an8›$‹an22›»
password_hash: "«$argon2id$v=19$m=65536,t=3,p=4$‹bs22›$‹bs43›»"
<?php define('DB_PASSWORD', '«wK82!zlpQ»');
define( 'AUTH_KEY', '«k|7;Vd-%‹an20›~+!x9@z‹an20›»');
define("SECRET_TOKEN", "«‹an40›»");
defined('NONCE_SALT') or define('NONCE_SALT', '«‹an30›)&^%‹an30›»');

## headers, command lines
Authorization: Basic «‹bs22›==»
-H "Authorization: Basic «‹bs31›=»"
"Authorization": "Bearer «‹an40›»"
headers = {'Authorization': 'token «‹hex40›»'}
Authorization: Token «‹hex40›»
Authorization: ApiKey «‹an40›»
proxy_set_header Authorization "Basic «‹bs28›»";
Proxy-Authorization: Basic «‹bs28›»
-H 'X-Api-Key: «‹an32›»'
-H "PRIVATE-TOKEN: «‹url20›»"
--header "x-vault-token: «‹an26›»"
curl -u ada:«s3cr3tPw9» https://x.io
curl --user "ada:«Zk8!2lqw»" https://x.io
curl -sS -uada:«kZ82qlwp» x.io
wget --user=a --password=«kQ82zlwp» x.io
wget --http-password «kP82zlwp» x.io
mysql -u root -p«kZ92qlwp» app
mysql --password=«kZ72qlwp» app
mysqldump -uroot -p'«kZ62!qlwp»' app
PGPASSWORD=«kZ52qlwp» psql -h db
export PGPASSWORD='«kZ42!qlwp»'
sshpass -p «kZ32qlwp» ssh root@x
sshpass -p '«kZ22!qlwp»' ssh root@x
redis-cli -a «kZ12qlwp» ping
mongo -u root -p «kX82qlwp» --authenticationDatabase admin
docker login -u ada -p «kV82qlwp» r.io
docker run -e DB_PASSWORD=«kB82qlwp» app
helm install x --set postgresql.password=«kN82qlwp»
helm upgrade x --set-string auth.rootPassword="«kM82!qlwp»"
kubectl create secret generic db --from-literal=password=«kL82qlwp»
az login --service-principal -u x -p «kK82qlwp~Q» --tenant t
openssl rsa -in a.key -passin pass:«kJ82qlwp»
keytool -storepass «kH82qlwp» -list
jarsigner -storepass «kG82qlwp» -keypass x
net use z: \\srv\share /user:ada «kF82!qlwp»
smbclient //srv/share -U ada%«kD82qlwp»
ftp -n <<EOF
|user ada «kS82qlwp»
sqlcmd -S db -U sa -P «kA82!qlwp»
htpasswd -b .htpasswd ada «kZ83qlwp»
echo '«kZ84!qlwp»' | docker login --password-stdin
echo "root:«kZ85!qlwp»" | chpasswd
app --token «‹hex40›»
app --token=«‹an32›»
app --api-key "«‹an32›»"
app --secret '«‹an28›»'
app --password «kZ86!qlwp»

## URLs
postgres://admin:«h7Rt2kLq»@db.internal:5432/app
DATABASE_URL=mysql://root:«kZ87qlwp»@127.0.0.1/app
redis://:«kZ88qlwp»@cache:6379/0
amqp://guest:«kZ89qlwp»@mq//
mongodb+srv://app:«kZ%40q2lwp»@c0.x.mongodb.net/app
jdbc:mysql://db/app?user=a&password=«kZ90qlwp»
jdbc:oracle:thin:app/«kZ91qlwp»@//db:1521/x
jdbc:postgresql://db/x?password=«kZ92%21ql»&ssl=true
jdbc:sqlserver://db;user=sa;password=«kZ93!qlwp»;encrypt=true
https://«‹hex40›»@api.x.io/v1
https://oauth2:«‹an24›»@gitlab.x.io/a/b.git
https://ada:«p%23ss7Wd»@x.io/
smtp://ada%40x.io:«kZ94qlwp»@smtp.x.io:587
ftp://ada:«kZ95!qlwp»@ftp.x.io
cloudinary://‹dig15›:«‹url27›»@cloud
socks5://u:«kZ96qlwp»@proxy:1080
http://ada:«short1»@x.io
CELERY_BROKER = "amqp://app:«kZ97qlwp»@rabbit:5672/vhost"
sqlalchemy.url = postgresql+psycopg2://app:«kZ98qlwp»@db/app
ldap://cn=admin:«kZ99qlwp»@ldap
otpauth://totp/x:ada?secret=«‹bt32›»&issuer=x
https://x:x-oauth-basic@x.io/?sig=«‹an43›%3D»
snowflake://ada:«kZ81!qlwp»@acc/db

## XML
<password>«kQ81!zlwp»</password>
<server><id>c</id><username>ada</username><password>«kQ82zlwpX»</password></server>
<passphrase>«kQ83!zlwp»</passphrase>
<privateKey>«‹bs64›»</privateKey>
<property name="password" value="«kQ84!zlwp»"/>
<property name="javax.persistence.jdbc.password" value="«kQ85zlwpY»"/>
<property name="hibernate.connection.password">«kQ86zlwpZ»</property>
<add key="ApiKey" value="«‹an32›»" />
<add name="x" connectionString="Server=s;User=u;Password=«kQ87!zlwp»" />
<Resource name="jdbc/x" username="u" password="«kQ88zlwp!»" />
<context-param><param-name>db.password</param-name><param-value>«kQ89zlwpA»</param-value></context-param>
<env-entry>
|  <env-entry-name>apiToken</env-entry-name>
|  <env-entry-value>«‹an32›»</env-entry-value>
<bean><property name="secretKey"><value>«‹bs40›»</value></property></bean>
<string name="api_key">«‹an32›»</string>
<string name="google_maps_key">«AIza‹url35›»</string>
<user username="tomcat" password="«kQ90zlwp!» roles="manager-gui"/>
<key>apiKey</key>
|<string>«‹hex32›»</string>
<ClearTextPassword>«kQ92!zlwp»</ClearTextPassword>
<setting name="Token" serializeAs="String"><value>«‹an40›»</value></setting>
<AdministratorPassword><Value>«kQ93!zlwp»</Value></AdministratorPassword>

## SQL
CREATE USER app IDENTIFIED BY '«kW81!zlqp»';
create user app identified by "«kW82zlqp»";
ALTER USER app WITH PASSWORD '«kW83zlqp»';
CREATE ROLE app LOGIN PASSWORD '«kW84!zlqp»';
GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY '«kW85zlqp»';
SET PASSWORD FOR 'a'@'%' = PASSWORD('«kW86!zlqp»');
ALTER LOGIN sa WITH PASSWORD = N'«kW87!zlqp»';
CREATE LOGIN app WITH PASSWORD='«kW88!zlqp»';
ALTER USER app IDENTIFIED WITH mysql_native_password BY '«kW89!zlqp»';
CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'u', password '«kW90zlqp»');
CREATE SECRET (TYPE S3, KEY_ID 'x', SECRET '«‹bs40›»');

## keys, blocks
-----BEGIN RSA PRIVATE KEY-----
|«‹pem4›
|‹bs30›=
|»-----END RSA PRIVATE KEY-----
key: |
|  -----BEGIN PRIVATE KEY-----
|  «‹bs64›
|  ‹bs64›
|  ‹bs20›==
|  »-----END PRIVATE KEY-----
"private_key": "-----BEGIN PRIVATE KEY-----\n«‹bs64›\n‹bs64›\n‹bs20›==\n»-----END PRIVATE KEY-----\n",
-----BEGIN EC PRIVATE KEY-----
|«‹pem2›
|»-----END EC PRIVATE KEY-----
-----BEGIN OPENSSH PRIVATE KEY-----
|«‹pem5›
|»-----END OPENSSH PRIVATE KEY-----
-----BEGIN ENCRYPTED PRIVATE KEY-----
|«‹pem3›
|»-----END ENCRYPTED PRIVATE KEY-----
k = "-----BEGIN EC PRIVATE KEY-----\n" +
|    "«‹bs64›\n" +
|    "‹bs40›=\n" +
|    »"-----END EC PRIVATE KEY-----"
ssh: "-----BEGIN OPENSSH PRIVATE KEY-----\\n«‹bs64›\\n‹bs30›=\\n»-----END OPENSSH PRIVATE KEY-----"
PuTTY-User-Key-File-2: ssh-rsa
|Encryption: none
|Private-Lines: 2
|«‹bs64›
|‹bs64›»
|Private-MAC: x
-----BEGIN DSA PRIVATE KEY-----
|«‹pem3›»
|and the file ends

## Kubernetes
apiVersion: v1
|kind: Secret
|data:
|  user: YWRh
|  password: «‹bs22›==»
apiVersion: v1
|kind: Secret
|metadata: {name: x}
|stringData:
|  smtp: «kR81zlqp!»
kind: Secret
|data:
|  tls.key: «LS0tLS1CRUdJTiB‹bs200›=»
users:
|- name: admin
|  user:
|    client-key-data: «LS0tLS1CRUdJTiB‹bs200›=»
users:
|- name: sa
|  user:
|    token: «‹an48›»
{"auths": {"r.io": {"auth": "«‹bs27›=»"}}}
.dockerconfigjson: «eyJhdXRocyI6‹bs100›=»
kind: SealedLike
|env:
|- name: DB_PASSWORD
|  value: «kR82zlqp!»
env:
|  - name: API_TOKEN
|    value: "«‹an32›»"
- {name: SECRET_KEY, value: «‹an32›»}
"name": "DB_PASSWORD", "value": "«kR83zlqp!»"
{"Key": "ApiKey", "Value": "«‹an32›»"}
apiVersion: v1
|data:
|  mongo-root: «‹bs26›==»
|kind: Secret
"""

_LOOKALIKES = r"""
## hashes, identifiers, checksums
commit ‹hex40›
Merge: ‹hex7› ‹hex7›
rev = "‹hex40›"
content_hash = "‹hex64›"
sha256:‹hex64›
image: nginx@sha256:‹hex64›
FROM python:3.12@sha256:‹hex64›
"integrity": "sha512-‹bs86›=="
<script integrity="sha384-‹bs64›" crossorigin="anonymous"></script>
"resolved": "https://registry.x.org/a/-/a-1.0.0.tgz#‹hex40›"
checksum = "‹hex64›"
    --hash=sha256:‹hex64› \
url = "https://files.x.org/packages/ab/cd/‹hex60›/a-1.0-py3-none-any.whl"
github.com/a/b v1.2.3 h1:‹bs43›=
etag: "‹hex32›"
ETag: W/"‹hex16›-‹hex8›"
md5 = '‹hex32›'
assert digest == "‹hex64›"
Etag = "‹bs27›="
id: ‹uuid1›
"uuid": "‹uuid1›",
request_id="‹uuid1›"
traceparent: 00-‹hex32›-‹hex16›-01
trace_id = "‹hex32›"
ObjectId("‹hex24›")
"_id": "‹hex24›",
GUID("{‹uuid1›}")
DEFINE_GUID(X, 0x‹hex8›, 0x‹hex4›, 0x‹hex4›, 0x8c);
ProjectGuid>{‹uuid1›}</ProjectGuid>
13B07FBF1A68108700A75B9A /* Foo.m in Sources */ = {isa = PBXBuildFile; fileRef = ‹HEX24›; };
0x‹hex40›
contract = "0x‹hex40›"
txHash: "0x‹hex64›"
blob ‹hex40› 1234
index ‹hex7›..‹hex7› 100644
- uses: actions/checkout@‹hex40› # v4
fixes ‹hex10›
fingerprint: ‹HEX40›
SHA256:‹bs43› ada@host (ED25519)
Fingerprint = SHA1:‹HEX40›
gpg --recv-keys ‹HEX40›
key_fingerprint = "‹HEX40›"
x5t: ‹url27›
"kid": "‹url27›",
kid = "‹hex40›"
data-integrity="‹hex40›"
nonce = "‹hex32›"
salt = "‹hex32›"
iv = bytes.fromhex("‹hex32›")
color: #1f2e3d; background: #aabbccdd;
font-face-‹hex8›
@font-face { src: url(data:font/woff2;base64,‹bs160›) }
<img src="data:image/png;base64,iVBORw0KGgo‹bs160›=="/>
ICON = "iVBORw0KGgo‹bs160›=="
base64 = "R0lGODlhAQABAIAAAAAAAP‹bs20›=="
![badge](https://img.x.io/badge/a-‹hex6›.svg)
version = "1.2.3+‹hex7›"
v0.0.0-20210101000000-‹hex12›
tag = "sha-‹hex7›"
chunk-‹hex8›.js
/_next/static/chunks/‹hex16›.js
main.‹hex20›.css
snapshot `renders 1`] = `"‹hex10›"`;
EXPECTED = "‹hex128›"
"digest": "sha256:‹hex64›"
public_key = "04‹hex128›"
pubkey: ‹bs43›=
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹bs43› ada@x
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ‹bs200›== ada@x
-----BEGIN PUBLIC KEY-----
|‹pem2›
|-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE-----
|‹pem4›
|-----END CERTIFICATE-----
-----BEGIN PGP PUBLIC KEY BLOCK-----
|
|‹pem3›
|=abcd
|-----END PGP PUBLIC KEY BLOCK-----
-----BEGIN PGP SIGNATURE-----
|
|‹pem2›
|-----END PGP SIGNATURE-----
  certificate-authority-data: LS0tLS1CRUdJTiB‹bs200›=
    client-certificate-data: LS0tLS1CRUdJTiB‹bs200›=
age1‹lo58›
recipient = "age1‹lo58›"
RSAPublicKey = "MIIBIjANBgkqh‹bs300›IDAQAB"
"publicKey": "‹bs43›="
DNS TXT "v=DKIM1; k=rsa; p=MIGfMA0‹bs200›"
google-site-verification=‹url43›
pin-sha256="‹bs43›="
sitekey: "6Le‹url37›"
data-sitekey="6L‹url38›"
stripe.js("pk_live_‹an24›")
pk_test_‹an99›
const PUBLISHABLE = "pk_live_‹an99›";
AccountSid = "AC‹hex32›"
client_id: "‹dig12›-‹lo32›.apps.googleusercontent.com"
"client_id": "‹uuid1›"
tenant_id = "‹uuid1›"
clientId: '‹an20›',
app_id = "‹dig16›"
projectId: "my-app-‹hex5›"
G-‹up10›
UA-‹dig8›-1
arn:aws:iam::‹dig12›:role/deploy
arn:aws:secretsmanager:eu-west-1:‹dig12›:secret:db/password-‹an6›
ami-‹hex17› and vpc-‹hex17›
subnet_id = "subnet-‹hex17›"
s3://bucket/‹hex32›/a.csv
dQw4w9WgXcQ
https://youtu.be/‹url11›
https://docs.google.com/document/d/‹url44›/edit
https://gist.github.com/ada/‹hex32›
https://discord.gg/‹an8›
https://x.slack.com/archives/C‹up8›/p‹dig16›
C‹up8›

## placeholders
password = "changeme"
password: your-password-here
api_key = "YOUR_API_KEY"
API_KEY=your_api_key_here_123
token: <your token>
token = "<TOKEN_1234567890abcdef>"
api_key: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
API_KEY=XXXXXXXXXXXXXXXX
password: "********"
secret: [REDACTED]
token = "REPLACE_ME_WITH_TOKEN_1"
AKIAIOSFODNN7EXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
export OPENAI_API_KEY=sk-...
OPENAI_API_KEY="sk-your-key-goes-here-1234567890"
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
Authorization: Bearer <token>
Authorization: Bearer YOUR_ACCESS_TOKEN
curl -u user:password https://x.io
curl -u "$USER:$PASS" https://x.io
curl -H "Authorization: Bearer $TOKEN" https://x.io
postgres://user:password@localhost/app
postgres://USER:PASSWORD@HOST:5432/DB
postgres://{user}:{secret1}@localhost/app
mysql://root:${DB_PASS}@db/app
redis://:%s@localhost
f"postgres://{USER}:{PASSWORD}@{HOST}/x1"
https://username:password@example.com/
amqp://user:pass@host/
https://$TOKEN@github.com/a/b.git
https://x-access-token:${{ secrets.GITHUB_TOKEN }}@github.com/a/b
scheme://user:pass1@host
DB_PASSWORD=
DB_PASSWORD=""
password: null
password = None
PASSWORD=$1
PASSWORD=${PASSWORD:?missing}
PASSWORD=${DB_PASSWORD:-default1}
password: ${DB_PASSWORD}
password: "{{ vault_db_password1 }}"
password: {{ .Values.db.password | b64enc | quote }}
token: ${{ secrets.NPM_TOKEN_V2 }}
api_key = "${STRIPE_API_KEY_1234}"
api_key: !Ref ApiKeyParameter1
password: !vault |
token = "$(cat /run/secrets/token1)"
TOKEN=$(vault read -field=token secret/x1)
TOKEN=`cat token1.txt`
password = "%(db_password1)s"
password: "@@DB_PASSWORD1@@"
password: #{DbPassword1}
password = "#{ENV['DB_PASSWORD1']}"
"password": "__DB_PASSWORD1__"
spring.datasource.password=${DB_PASSWORD1}
jdbc.password=@db.password1@
<password>${env.REPO_PASSWORD1}</password>
<password>{enc}</password>
<add key="ApiKey" value="#{ApiKey1}#" />
secret: file:///run/secrets/db1
password_file: /run/secrets/db_password1
PASSWORD_FILE=/run/secrets/pg_pass1
token: vault:secret/data/db1#token
apiKey: op://vault1/item2/field3
secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:x1"
password = "dummy-password-1"
password: "test1234"
api_key = "fake-api-key-0123456789"
secret = "sample_secret_0123456789"
client_secret: "CLIENT_SECRET_123456"
secret = "0000000000000000"
token = "1234567890123456"
token: "abcdefghijklmnop"

## code
password = getpass.getpass()
password = os.environ["DB_PASSWORD_2"]
password = os.getenv("DB_PASSWORD2")
password=settings.DB_PASSWORD2,
password = config.get("db", "password2")
const password = process.env.DB_PASSWORD2;
String password = request.getParameter("password1");
password: string;
password?: string | null;
password: str = Field(min_length=8)
def login(user: str, password: str | None = None) -> Token2:
fn verify(password: &[u8; 32]) -> bool {
private String apiKey1;
let token = tokens[0];
token = next(tokens1)
token = self.tokens[i + 1]
token=token1, secret=secret2
token = parser.peek2()
let token = Token::new(TokenKind::Ident, span1);
tok = Token(type=TOKEN_NAME1, value="x2")
while (token != TOKEN_EOF1) {
token := scanner.next1()
Token: lex.Token2{},
TOKEN_TYPE = "Bearer"
TOKEN_TYPE_2 = "urn:ietf:params:oauth:token-type:id_token"
ACCESS_TOKEN_EXPIRE_MINUTES = 30
TOKEN_URL = "https://auth.x.io/oauth2/token1"
token_url = "/api/v2/oauth2/token"
token_endpoint: "https://login.x.io/common/oauth2/v2.0/token",
tokenUri = "https://oauth2.googleapis.com/token",
SECRET_NAME = "prod/db/password-2024"
secret_name: my-app-db-credentials-v2
secretName: app-tls-2024-cert
secretKeyRef: {name: db-secret-v2, key: password}
PASSWORD_FIELD = "user_password_confirmation2"
password_field = "user_password_confirmation"
API_KEY_HEADER = "X-Api-Key-V2"
api_key_name = "default-key-2024"
PASSWORD_RESET_TIMEOUT_DAYS = 3
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.x2.MinimumLengthValidator"}]
password_regex = r"^(?=.*[A-Z])(?=.*\d).{8,}$"
PASSWORD_PATTERN = "[A-Za-z0-9!@#$%]{8,64}"
const TOKEN_PATTERN = /ghp_[A-Za-z0-9]{36}/;
pattern: "AKIA[0-9A-Z]{16}"
if token.startswith("sk-ant-"):
PREFIXES = ("ghp_", "gho_", "xoxb-", "sk_live_")
api_key = load_key("keys/prod2.json")
api_key_path = "/etc/app/keys/api_key2.txt"
api_key = "/etc/app/keys/api_key2.txt"
token = "src/compiler/tokens2/lexer.rs"
token = "./fixtures/tokens/token-1.json"
token="com.example.auth.TokenProvider2"
secret = get_secret("database/password/1")
client_secret = fetch("CLIENT_SECRET2")
secret_key = derive_key(master1, salt2)
key = "user:1234:profile:v2"
key: "feature.flags.new-checkout-v2"
cache_key = "session:v2:user:8f3a"
primary_key = "account_id_2_order_id"
foreign_key = "fk_orders_2_customer_id"
partition_key = "tenant#1234#2024"
sort_key = "2024-01-01T00:00:00Z"
keyboard = "us-intl-104key"
public_key_token="b77a5c561934e089"
PublicKeyToken=b77a5c561934e089, Version=4.0.0.0, Culture=neutral
csrf_token = generate_csrf(32)
<input type="password" name="password2" id="id_password2" placeholder="8+ characters">
<label for="password1">Password 1</label>
<input name="csrf_token" type="hidden" value="{{ csrf_token() }}">
<password-input v-model="form.password2" />
type: "password", name: "newPassword2"
.password-input-2 { width: 240px }
#token-list2 > li { color: #0a1b2c }
i18n: { password: "Passwort2 eingeben" }
"password": "Le mot de passe doit contenir 8 caractères",
msgid "Invalid password, 3 attempts left"
"password.too.short": "Use 8+ characters"
"password": "Password must have 1 digit",
password: Passwort
"token": "Jeton",
throw new Error("Invalid token at position 42");
log.info("token expired after 3600s")
error: "secret must be at least 32 bytes"
raise ValueError(f"bad password: {password1!r}")
print("Password: ", end="")
"Enter your password (8-64 chars): "
assert token == "token-1"
token = "tok_visa"
secret = "topsecret"
test_token = "access-token-1"
describe("token refresh v2", () => {
it("rejects password123 as password", async () => {
def test_password_reset_token_expires_after_24h():
token = "expired-token-2024-fixture"
user = User(password="password123")
{"password": "secret"}
auth = ("user", "password")
requests.get(url, auth=(user1, password1))
connect(user="root", password="")
mysql -u root -p app1
psql -W -h db1 app
docker login -u "$USER" --password-stdin
ssh -p 2222 ada@host1
tar -xpf archive1.tar.gz
curl -uri https://x.io/a1
mkdir -p build/release2
cp -p a1b2c3.txt dest4
sshpass -e ssh host1
--password-file /run/pw1
--token-file=/var/run/token1
--secret id=npmrc,src=.npmrc2
kubectl create secret generic db --from-literal=password="$PASSWORD1"
ARG TOKEN_VERSION=v2.13.1
ENV KEYCLOAK_VERSION=24.0.5
ENV PASSWORD_MIN_LENGTH=12
POSTGRES_PASSWORD_FILE: /run/secrets/pg1
volumes: [db_secret_v2:/run/secrets]
secrets: [db_password_v2]
- name: DB_PASSWORD
|  valueFrom:
|    secretKeyRef: {name: db1, key: password}
env:
|- name: PASSWORD_MIN_LENGTH
|  value: "12"
kind: ConfigMap
|data:
|  logo: iVBORw0KGgo‹bs100›==
|  mode: production2
kind: Secret
|type: Opaque
|data: {}
kind: Secret
|stringData:
|  password: ${DB_PASSWORD1}
identified by "${DB_PASSWORD1}"
CREATE USER app IDENTIFIED BY :password1;
ALTER USER app PASSWORD EXPIRE INTERVAL 90 DAY;
IDENTIFIED WITH authentication_ldap_sasl2
The product is identified by 'article number 12'.
define('DB_NAME', 'wordpress2');
define('AUTH_KEY', 'put your unique phrase here');
define('TOKEN_VERSION', '2.13.1');
define("WP_DEBUG", true);

## sentences, files, other code
Each token costs 0.0001 $ and a secret is 32 bytes long.
The tokens of a text are counted: key=1234567890123456
To set a password: open Settings2, then Security.
Basic authentication is described in RFC7617.
Authorization: Basic realm="x1"
WWW-Authenticate: Basic realm="Restricted2024Area"
The API key is read from API_KEY_FILE2.
Use the token: it expires after 3600s.
password: at least 8 characters, one digit (0-9)
token -- see section 4.2.1
secret: 256-bit, hex
Password: 8-64 characters
pass: 12 fail: 3 skip: 4
passed=128, failed=2
bypass: "route53-health"
compass="north2south4"
tokens: 4096, max_tokens=8192
max_tokens: 128000
tokenizer = "cl100k_base"
tokenizer: "bert-base-uncased-v2"
model = "claude-3-5-sonnet-20241022"
token_ids = [101, 2023, 2003, 102]
pad_token = "[PAD1]"
eos_token="<|endoftext|>"
bos_token: "<s1>"
special_token = "▁token1"
monkey = "rhesus-macaque-2024"
turkey: "ankara-06-plates"
keystone = "liberty_v3_2015"
secretary: "Ada Lovelace 1843"
passport = "document-type-P2"
passenger_name = "A. Lovelace (seat 12C)"
author = "ada <ada@x1.io>"
authority: "https://login.x.io/common/v2.0"
authorization_code = grant2
authenticated: true2
task-management-with-a-long-name-1234567890
risk-management-2024-q3-review-and-plan
disk-usage-analyzer-for-linux-servers-v2
def test_ghp_prefix(): ...
import ghp_import2
hf_hub_download(repo_id="a/b", filename="c1.bin")
HF_HUB_OFFLINE=1
npm_config_registry=https://r.x.io/
npm_lifecycle_event_of_the_package_manager_2
sk-learn-compatible-estimators-0123456789
sk_SK.UTF-8
SG.Controls.Buttons.PrimaryButton2
pat-pattern-matching-utilities-2
glsl-shader-loader-version-2.1.0
xoxo-hugs-and-kisses-12345
dapi-generator-for-rest-services-2
re_compile_pattern_syntax_2
live_reload_server_port_35729
ak_build_release_candidate_20240101
A3-size-paper-297x420
key-value-store-implementation-in-rust-2
eyJ is how base64 of {" begins
-eyJ-eyJ-eyJ-eyJ-
EAAccelerometer2DSensorManager
AIzawa-Kazuhiro-2024
ASIAPacificRegionalOffice2
AKIANTHOLOGY
LTAIR2024RESULTS
y0_offset_of_the_first_sample_row
t1.micro, t2.small
1//2 is 0 and 1//0 raises
pul-metadata-v2
rnd_uniform_distribution_2
sl.SoftmaxLayer(units=128)
00-default.conf and 00-header2
secret_sharing_scheme_shamir_threshold2
rzp_live_mode_enabled_for_tenant2
tfp_distributions_normal_mixture_2
ntn_network_topology_notation_v2
s-s4t2udio-name
dp.pt.Distribution2
vcp_volume_control_panel_version_2
https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
https://api.telegram.org/bot<token>/getMe
https://discord.com/api/webhooks/{id}/{token}
https://x.io/?token={token1}&key=$KEY2
https://x.io/login?next=/account/token/refresh2
https://x.io/?page_token=2&sort_key=name1
https://x.io/docs#api_key=how-to-get-one-2
http://localhost:8080/path@2x.png
http://x.io:8080/a:b@c1
git@github.com:ada/repo2.git
ssh://git@host.x:2222/a/b
mailto:ada@x1.io?subject=token2
npm:@scope/name@1.2.3
docker://ghcr.io/a/b:v1@sha256:‹hex64›
https://cdn.x.io/npm/vue@3.4.21/dist/vue.global.js
"time: 12:34:56@UTC+2"
//example.com:443/a@b1
pkg:npm/%40angular/core@12.3.1
<!-- password: see the vault2 -->
<property name="passwordEncoder" ref="bcryptEncoder2"/>
<property name="hibernate.dialect" value="org.hibernate.dialect.MySQL57Dialect"/>
<string name="password_hint">At least 8 characters</string>
<string name="token_expired">Token 2 expired</string>
<param-name>password</param-name>
|<param-name>timeout2</param-name>
<key>tokenTitle2</key>
|<string>Access token list 2</string>
<password/>
<password></password>
<xs:element name="password" type="xs:string2"/>
<PublicKeyToken>31bf3856ad364e35</PublicKeyToken>
xmlns:token="http://x.io/2024/token1"
<token name="indent2">4 spaces</token>
<keyword>token2ident</keyword>
password VARCHAR(255) NOT NULL,
token CHAR(64) PRIMARY KEY,
INSERT INTO tokens (token, user_id) VALUES (?, ?1);
SELECT password2 FROM users WHERE token = :token1
password = PASSWORD(?1)
string password = 3;
optional bytes secret_key = 12;
password: Option<String2>,
secret: Secret<String, 32>,
token: Vec<u8>,
auto token = std::make_shared<Token2>(x);
auto token = reinterpret_cast<Token2*>(ptr1);
token_t *token = &tokens[idx2];
char password[MAX_LEN_64];
#define TOKEN_MAX_LEN_64 64
#define TOKEN_PASTE2(x, y) x ## y
#define SECRET_KEY_SIZE crypto_box_SECRETKEYBYTES32
enum { TOKEN_A1 = 1, TOKEN_B2 = 2 };
case TOKEN_STRING2: return "string2";
var secret *corev1.Secret
secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
Token: s.config.Token2,
password, err := bcrypt.GenerateFromPassword([]byte(pw1), 12)
@Value("${app.jwt.secret2}")
@Column(name = "password_hash_v2")
@JsonProperty("access_token2")
key = lambda item2: item2[1]
sorted(x, key=str2int)
max(items, key=lambda p: p.password2)
for key, token in zip(keys1, tokens2):
token: "Token2" = Depends(get_token_v2)
TOKEN = TypeVar("TOKEN2")
secret = base64.b64decode(env2["SECRET2"])
self.password = kwargs.pop("password2", None)
private_key = rsa.generate_private_key(65537, 2048)
with open("private_key2.pem") as key:
ssh_key_path = "~/.ssh/id_ed25519_v2"
private_key_file = "/etc/ssl/private/server2.key"
key_file = "client-key-2024.pem"
PASSWORD_STORE_DIR=~/.password-store2
passwd: files systemd2
/etc/passwd:0:root:x2
root:x:0:0:root:/root:/bin/bash
nobody:*:65534:65534::/:/sbin/nologin2
ada:!:19000:0:99999:7:::
unix.md5crypt2 is old
$2b is the prefix of bcrypt
price: $6$ per item, $1$ off
password_hash = bcrypt.hash2(pw1)
token = "Bearer " + jwt.sign2(payload1)
headers["Authorization"] = `Bearer ${token2}`
"Authorization": "Bearer " + token2
Authorization: Basic {encoded2}
Basic usage2 of the interface
Bearer tokens2 are described below
apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key2' }
securitySchemes: { token2: { type: http, scheme: bearer } }
permissions: id-token: write2
scope = "https://www.googleapis.com/auth/cloud-platform2"
access_token_scope = "read:user2 write:repo"
grant_type=refresh_token2
token_format: "opaque-v2-jwt-compatible"
TokenAlgorithm = "RS256-PKCS1-v1_5"
secret_backend = "airflow.providers.x2.SecretsBackend"
passwordPolicy: minimum8-upper1-digit1
passwordEncoder=bcrypt2b-strength12
secret_type: kubernetes.io/service-account-token2
secret_version = "projects/1234/secrets/db/versions/2"
lets: "SecretKeySpec2AlgorithmName"
KeyStoreType = "PKCS12"
sslmode=require2 channel_binding=prefer
PRIVATE_KEY_ALGORITHM = "ECDSA_P256_SHA256"
api_key_1, api_key_2 = keys2
"""

# Written later, while the rules were tuned.
_MORE_LOOKALIKES = r"""
password = "Passwort"
password_label: "Passwort (min. 8 Zeichen)"
passwordPlaceholder: "8+ chars, 1 number"
password: 'auth.login.password_v2',
password: i18n.t("login.pw2"),
password="{{ lookup('env', 'PW1') }}"
password: "{{ (db.password1) }}"
password = f"{prefix1}-{suffix2}"
password = prefix + "-2024!"
password == "" || len(password) < 8
if (password.length < 8 && !/\d/.test(password)) {
password: [{ required: true, min: 8 }],
password: z.string().min(8).max(64),
password: Joi.string().pattern(/^[a-zA-Z0-9]{3,30}$/)
password = forms.CharField(max_length=128, widget=PasswordInput2)
password = Column(String(255))
password = models.CharField(_("password"), max_length=128)
Password = "Password1"
password1 = self.cleaned_data["password1"]
password2 = password1
password: process.env["DB_PASS_2"] || "",
password: cfg.Database.Password2,
password: ENV['DB_PASS2'],
password: <%= ENV["DB_PASS2"] %>
password: ((db-password-2))
password: (( grab secrets.db_pass2 ))
password: ENC(x2)
password: sops-managed-v2
password: null # 8 chars
password:    # set below, 12 chars
password=,user=ada1
pass = pass2
pass=$(pwgen 16 1)
PASS=$(openssl rand -hex 16)
TOKEN=$(uuidgen | tr -d -)
token=`openssl rand -base64 32`
secret=$(echo "$1" | base64)
API_KEY=$2
export TOKEN="$(aws ssm get-parameter --name /x/y1)"
token: process.env.TOKEN2 ?? 'none',
token: (await getToken2()).value,
token: ctx.state.user2.token,
token.kind === "BinaryOperator2"
token.type == TokenType.LEFT_BRACE2
token: TokenKind.Identifier2,
token: 'punctuation.definition.string.begin.v2',
token: "keyword.control.flow.block-scalar.literal2.yaml"
{token: "constant.numeric.float2", regex: "[+-]?\\d+(?:\\.\\d*)?"}
"token": "entity.name.function.method2.js",
Token("IDENTIFIER2", "[a-zA-Z_][a-zA-Z0-9_]*")
token='%s' % next2(it)
token = tokens.pop2()
token, rest = split2(rest)
tokens = ["a1", "b2"]
secret = "a" * 32
SECRET = b"\x00" * 32
secret = bytes(range(32))
secret = secrets.token_hex(32)
secret_key = os.urandom(24).hex()
SecretKeySpec keySpec = new SecretKeySpec(bytes1, "HmacSHA256");
SecretKey key = KeyGenerator.getInstance("AES256").generateKey();
Mac.getInstance("HmacSHA512-256")
const secret = crypto.randomBytes(32).toString("hex2");
var secretRef = "projects/p1/secrets/s2/versions/latest"
secretName: letsencrypt-prod-account-key-v2
secret: my-release-postgresql-ha-2
secret: kubernetes-dashboard-key-holder2
imagePullSecrets: [{name: regcred2}]
existingSecret: "postgres-credentials-v2"
existingSecretPasswordKey: postgres-password2
tokenSecretRef: {name: cf-api-token2, key: api-token}
apiTokenSecretRef:
credentials: include2
credentialsId: 'jenkins-deploy-key-2024'
credentials('aws-prod-deployer-2')
credential: aws-sso-profile-dev-2
withCredentials([string(credentialsId: 'sonar-token-2', variable: 'SONAR2')])
private_key: ~/.ssh/deploy_ed25519_2024
private_key_path = "../certs/tls-2024.key"
privateKey: fs.readFileSync("certs/key2.pem"),
PRIVATE_KEY_PEM = read2("k.pem")
private_key_type: rsa4096-sha512
api_key: str = Header(alias="X-Api-Key2")
api_key=api_key2, model="gpt-4o-2024-08-06"
apiKey: import.meta.env.VITE_API_KEY2,
apiKey: z.string().uuid(),
api-key: ${{ inputs.api-key-2 }}
x-api-key: {{api_key2}}
"X-API-Key": apiKey2
x-amz-security-token;x-amz-date;host2
X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=3600
auth: "basic2"
auth = OAuth2PasswordBearer(tokenUrl="token2")
auth: bearerAuth2
auth = ("apikey", API_KEY2)
Authorization: Bearer eyJ...
Authorization: Bearer xoxb-your-token
Authorization: Digest username="x1", realm="y2"
'Authorization': 'Bearer %s' % token2
authorization: "Basic " + btoa(user2)
authorization: Bearer ${{ steps.auth2.outputs.id }}
access_token_url = "https://api.x.io/oauth/v2/access"
accessTokenLifetime: 3600s2
refresh_token: bool = True2
session_key = f"sess:{user_id}:v2"
session_secret_length: 64bytes
cookie_key = "locale_preference_v2"
encryption_key_size = "AES-256-GCM2"
encryption_key: alias/my-app-2024-key
kms_key = "alias/prod/rds-encryption-2024"
kms_key_id = "1234abcd-12ab-34cd-56ef-1234567890ab"
signing_key_id: "ed25519:auto-2024"
service_key: "payments-service-eu-west-1a"
app_key: "com.example.app.key2"
master_key_version = "v3.1.4-rc2"
storage_key = "redux-persist:root2"
storage_key: "theme-preference-v2"
host_key = "ssh-ed25519"
integration_key = "pagerduty-default-2"
license_key: "MIT-0 OR Apache-2.0"
subscription_key = "weekly-digest-2024-en"
client_key: 'acme.billing.v2.client'
write_key: segment.analytics.v2
account_key = "acct-type-savings-2"
application_secret_key_base = Rails.application.credentials2
hash_key = "user#123"
token_hash = "‹hex64›"
password_hash = "‹hex64›"
secret_sha256 = "‹hex64›"
key_hash: ‹hex40›
cache: key: ${{ runner.os }}-npm-${{ hashFiles('x2') }}
cache_key: deps-v2-{{ checksum "x1.lock" }}
redirect_uri=https%3A%2F%2Fx.io%2Fcb2&scope=a
https://x.io/?utm_source=token2&utm_campaign=secret2024
https://web.archive.org/web/20240101000000/http://x.io
http://user@host1.io:8080/x
svn+ssh://svn2@host/path
postgresql://localhost:5432/app2?user=ada
postgres://postgres@localhost:5432/x1
postgres://postgres:postgres@localhost:5432/x1
mongodb://root:rootpw@mongo
rsync://ada1@host::module
redis://localhost:6379/0
amqp://guest:guest@localhost:5672//
jdbc:h2:mem:test1;USER=sa;PASSWORD=
ftp://anonymous:guest@ftp.x.io/
sip:1234@x.io;transport=tcp2
//user:name2@
curl -u $USER1:$PASS1 x
curl -u ada https://x1.io
curl --user "${U1}:${P2}" x
mysql -uroot -p"$MYSQL_ROOT_PASSWORD1" < a.sql
mysql -h db1 -P 3306 -u root
psql -p 5433 -U ada2
docker run -p 8080:80 nginx1
ssh-keygen -p -f id2
mkdir -p a/b2
unzip -P "$PASS1" a.zip
zip -P ${ZIP_PW2} a.zip b
pass:[literal text2]
asciidoc pass:q[*bold2*]
| user | password | note2 |
| `--password` | `DB_PASSWORD` | database's password, 8+ chars |
| token | string | OAuth2 token |
    --password PASSWORD     the password (8-64)
  --token TOKEN             token2use
  -p, --password=PW1        Password
usage: app [--token TOKEN] [--secret SECRET2]
@param password the users's password, 8+ chars
:param token: token1 or token2
* @param {string} token - JWT2 token
/// The secret (32-byte) key
# password: minimum 12 chars
// TODO(ada): token rotation v2
- [ ] rotate token by 2024-06-01
## API key v2
**Token:** see section2
password reset link expires in 24h
Password must contain A-Z, a-z, 0-9
Enter password (attempt 2/3):
Your token is valid for 30min
secret santa 2024!
secret_word = "Rumpelstiltskin"
secret-garden-1911.epub
token-ring-802.5
IDENTIFIED BY PASSWORD
identified by its sha256 digest
The user is identified by user_id2 and
DROP USER IF EXISTS 'app2'@'localhost';
ALTER ROLE app VALID UNTIL '2025-01-01';
COMMENT ON COLUMN users.password IS 'bcrypt2 hash';
SELECT crypt('x', gen_salt('bf2'));
INSERT INTO users (name, password) VALUES ('ada', ?);
<input type="password" placeholder="Passwort2">
<input v-model="password" :rules="[v => v.length >= 8]">
<TextField name="password" label="Password 2" type="password" />
<add key="TokenLifetime" value="00:20:00" />
<add key="PasswordFormat" value="Hashed-SHA256" />
<property name="password" value="${db.password2}"/>
<entry key="password.min.length">8chars</entry>
<string name="password">Mot de passe</string>
<string name="token_label">Jeton d\'accès n°2</string>
<trans-unit id="password"><source>Password</source><target>Passwort2go</target></trans-unit>
<message key="password">Passwort2 vergessen?</message>
<data name="Password" xml:space="preserve"><value>Kennwort</value></data>
<xsd:attribute name="token" type="xsd:NMTOKEN2"/>
<security-role><role-name>token2</role-name></security-role>
kind: Secret
|metadata:
|  name: x-credentials-2024
|  labels: {a: "b2"}
|type: kubernetes.io/tls
kind: SecretStore
|data:
|  a: dmFsdWUxMjM0NTY=
kind: ExternalSecret
|spec:
|  data:
|  - secretKey: password
|    remoteRef: {key: prod/db2, property: password}
data "vault_generic_secret" "db2" {}
variable "token" { type = string }
variable "password" { default = "" }
output "secret_arn" { value = aws_secretsmanager_secret.x2.arn }
password = var.db_password2
password = random_password.db2.result
password = data.aws_ssm_parameter.pw2.value
token = module.vault2.token
secret_string = jsonencode(local.x2)
token = "${var.tok2}"
environment: PASSWORD_2
secrets: inherit2
with: { token: '${{ github.token }}' }
token: ${GH_TOKEN2}
if: secrets.TOKEN2 != ''
hf_token = HfFolder.get_token2()
tok = AutoTokenizer.from_pretrained("bert-base-cased2")
<|im_start|>user2
"added_tokens": [{"id": 1, "content": "<s2>"}]
"mask_token": "[MASK2]",
"unk_token": "<unk2>"
"cls_token": "[CLS]"
"token_type_ids2": 0
"tokens_per_second": 42.5
"auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs"
"private_key_id": "‹hex40›",
"client_x509_cert_url": "https://x.io/robot/v1/metadata/x509/a1%40b.iam"
"auth_uri": "https://accounts.google.com/o/oauth2/auth",
token_uri="https://oauth2.googleapis.com/token2"
"keyid": "SHA256:‹bs43›",
"sig": "MEUCIQD‹bs60›",
signature = "‹bs86›=="
"p256dh": "‹url87›"
vapidPublicKey: "B‹url86›"
VAPID_PUBLIC_KEY=B‹url86›
NEXT_PUBLIC_KEY_ID=pk2
recaptcha_public_key = "6Le‹url37›"
ssh_host_key_fingerprint: SHA256:‹bs43›
knownHosts: "github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹bs43›"
trusted-public-keys = cache.nixos.org-1:‹bs43›=
minisign RWQ‹bs53›
untrusted comment: signature from minisign
"contentHash": "‹bs86›==",
"sha512": "‹bs86›==",
sha1-‹bs27›=
"shasum": "‹hex40›",
"gitHead": "‹hex40›",
go:embed a1b2c3
// indirect h1:‹bs43›=
+Cgo‹bs80›
data:application/json;base64,eyJ2ZXJzaW9uIjozLCJz‹bs100›
//# sourceMappingURL=data:application/json;base64,eyJ‹bs100›
const wasm = "AGFzbQEAAAAB‹bs120›";
font: "d09GMgABAAAAA‹bs120›"
pdf = "JVBERi0xLjQK‹bs100›"
gz = "H4sIAAAAAAAA‹bs100›"
zip: UEsDBBQAAAAI‹bs100›
MIIDdzCCAl+gAwIBAgIE‹bs120›
cert = "MIIC‹bs300›"
ca_bundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t‹bs100›
caBundle: "LS0tLS1CRUdJTiBD‹bs100›"
"""


def _halves(texts: list[Text]) -> tuple[list[Text], list[Text]]:
    return texts[::2], texts[1::2]


_FOUND, _HELD = _halves(texts_of(_CREDENTIALS))
_OTHERS, _OTHERS_HELD = _halves(texts_of(_LOOKALIKES))
TUNED = Half(_FOUND, _OTHERS + texts_of(_MORE_LOOKALIKES))
HELD_OUT = Half(_HELD, _OTHERS_HELD)
