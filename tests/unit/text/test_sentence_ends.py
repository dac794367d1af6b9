"""Sentences of many languages: abbreviations, ordinals, quotations, marks of scripts; `¦` is where they end."""

import pytest

from service.domain.translation import SplitSentences
from service.text.sentences import cut

_TEXTS = """
en|The box weighs approx. 5 kg.
en|Read chap. VI of the book. ¦ Then sleep.
en|We watched Jeopardy! is what she said.
en|Yahoo! Inc. was sold. ¦ It is gone.
en|He met J. R. R. Tolkien. ¦ They talked.
en|George W. Bush was president.
en|See Fig. 3 and Tab. 4 in No. 5.
en|No. ¦ I don't want to.
en|It was cats vs. Dogs at noon.
en|Many animals, e.g. Lions, sleep.
en|Apple Inc. was founded in 1976. ¦ It is big.
en|He lives in St. Louis. ¦ She lives on Main St. ¦ They meet.
en|It opens at 9 a.m. ¦ Then we go.
en|It is 5 p.m. ¦ The shop closes.
en|At 5 p.m. Eastern time it closes.
en|Wait... ¦ What? ¦ Well... maybe.
en|Hm… ¦ Yes… no.
en|Really?! ¦ Yes.
en|He said "Go." ¦ Then he left.
en|"Go!" he said.
en|It is 3.14. ¦ See http://a.b/c.html. ¦ Done.
en|(It is open.) ¦ Go in.
en|The U.S. President spoke. ¦ He lives in the U.S. ¦ They don't.
en|Dr. and Mrs. Smith et al. were there.
en|On Jan. 5 and Sept. 12 it rained. ¦ In May. ¦ He came.
en|It is on p. 5, pp. 6-8, vol. IX, sec. 2, ch. 4.
en|hello. ¦ how are you? ¦ fine! ¦ really
en|Hello! ¦ how are you? ¦ fine
en|I like it. ¦ it is good.
en|So do I. ¦ Then we left.
en|He got vitamin C. ¦ It helped.
en|The bag weighs 5 kg. ¦ It is heavy.
en|He has a Ph.D. in physics. ¦ She has an M.D. ¦ They work.
en|Smith Jr. and Sons Ltd. won.
en|Lt. Col. Jones of the U.S. Army came. ¦ We left.
en|Use the app. ¦ Click OK. ¦ Open a new tab. ¦ Peter did.
en|I said no. ¦ Peter said yes. ¦ He sat in the sun. ¦ May came.
en|Is it 5? ¦ 6 people think so. ¦ 7 do not.
en|It ended.[1] ¦ Then came peace.²  ¦ Later war.
en|Call System.Text.Json. ¦ It parses. ¦ Node.js is fine.
en|The report (see fig. 2. Also app. B) is long. ¦ Read it.
en|Mt. Everest is 8,849 m. ¦ It is tall.
en|Version 2.0. ¦ Released today.
en|E.g. this. ¦ I.e. that.
en|He was born ca. 1850 and d. 1900.
en|Elvis, a.k.a. The King, sang.
en|The price is approx. USD 5 million, i.e. EUR 4 million.
en|Washington, D.C. is big. ¦ We moved to Washington, D.C. ¦ Then home.
en|Ask Mr. Brown, Ms. Green or Prof. White.
en|Wait ! ¦ Now.
en|Thanks! ¦ 😀 Great.
en|'Stop!' ¦ The man ran.
en|This is C++. ¦ That is C#. ¦ OK?
en|Rev. King met Gov. Brown and Sen. Paul. ¦ All left.
en|Sales rose 5% vs. Q2. ¦ Costs fell.
en|She works for Acme Corp. in Ohio. ¦ He works for Foo Co. ¦ They are rich.
en|The art. ¦ The act. ¦ The sun.
en|We met on Mon. 5 Dec. 2020.
en|Turn left on 5th Ave. and go.
de|Die 3. Auflage erschien am 5. Mai. ¦ Sie ist neu.
de|Er war der 2. Mann. ¦ Sie war die 1. Frau.
de|Das ist z. B. Wien, d. h. Österreich. ¦ Ja.
de|Das ist z.B. Die Zeit.
de|Dr. med. Müller und Prof. Dr. Meier kamen. ¦ Sie gingen.
de|Ludwig XIV. Bourbon lebte. ¦ Heinrich VIII. starb.
de|Es war 1990. ¦ Dann kam 1991. ¦ Peter lachte.
de|Er ist 25. ¦ Sie ist 30.
de|Siehe S. 5, Abb. 3, Bd. 2, Kap. 4 u. a. Orte.
de|Er kaufte Äpfel, Birnen usw. ¦ Dann ging er.
de|Müller & Co. KG und die Meier GmbH.
de|Er sagte: „Geh weg.“ ¦ Dann ging er.
de|„Geh weg!“, sagte er. ¦ »Komm!« sagte sie.
de|Im 19. Jh. war das anders. ¦ Am 24. Dezember ist Heiligabend.
de|Nr. 5 lebt. ¦ Die Str. ist lang. ¦ Vgl. § 5 Abs. 2 Nr. 3 BGB.
de|Sie wohnt in der Bahnhofstr. 5. ¦ Er nicht.
de|Der 100. Besucher kam. ¦ Der Bus fährt um 8. ¦ Wir warten.
de|Das kostet ca. 5 Mio. Euro bzw. 6 Mrd. Dollar.
de|Er lebte von 50 v. Chr. bis 20 n. Chr. ¦ Dann starb er.
de|Bitte bis 31. 12. 2020 zahlen. ¦ Danke!
de|Der 1. FC Köln gewann. ¦ Das 2. Spiel war gut.
de|Inh. Max Mustermann, geb. Schmidt, verh. Meier
de|Frau Dipl.-Ing. Huber, z. Hd. Herrn Maier
de|Joh. Seb. Bach? ¦ J. S. Bach!
de|Er ging um 17 Uhr. ¦ Um 18 Uhr kam er.
de|Die LED. ¦ Sie leuchtet. ¦ Das ist der Test. ¦ Hier ist es.
fr|J. Dupont et Mlle Durand sont là. ¦ Ils parlent.
fr|M. Dupont habite av. de la République. ¦ Il est là.
fr|Voir p. 5, fig. 2, art. 3 et chap. IV. ¦ Fin.
fr|Il dit « Viens ! » ¦ Puis il part.
fr|« Viens ! » dit-il. ¦ Elle vint.
fr|En 50 av. J.-C. Rome était grande.
fr|Par ex. Paris, c.-à-d. La capitale, etc. ¦ Voilà.
fr|Mme. Martin et Me. Petit. ¦ L'homme est là.
fr|Louis XIV. ¦ Il était roi.
fr|Quoi ?! ¦ Non… ¦ Si.
fr|Le Dr. Martin et le Pr. Petit. ¦ C'est tout.
es|El Sr. Pérez y la Sra. Gómez viven en la Av. Central núm. 5. ¦ Están bien.
es|¿Qué pasa? ¦ ¡Nada! ¦ Bien.
es|EE. UU. es grande. ¦ Véase pág. 5 y fig. 2.
es|Por ej. Madrid. ¦ P. ej. Barcelona.
es|Ud. puede ir. ¦ Vd. también.
es|Nació en 50 a. C. Roma era grande.
it|Vedi pag. 5 e fig. 2. ¦ Grazie.
it|Il sig. Rossi e la dott.ssa Bianchi. ¦ Il dott. Verdi è qui.
it|Nel 50 a.C. Roma era grande. ¦ L'uomo c'è.
it|La Fiat S.p.A. di Torino. ¦ Ecco.
it|Via Roma n. 5, cap. III, art. 7. ¦ Fine.
pt|O Sr. Silva mora na av. Paulista, n. 7. ¦ Ele é bom.
pt|A Dra. Costa e o Prof. Lima. ¦ Por ex. Lisboa.
pt|Veja a pág. 5, cap. 3. ¦ Obrigado!
nl|Bijv. Amsterdam, d.w.z. Nederland. ¦ Dat is het.
nl|Dhr. Jansen en mevr. De Vries, blz. 5. ¦ Ja.
nl|Drs. P. Bakker woont in St. Anna. ¦ Hij is thuis.
pl|Np. Warszawa, tzn. Polska. ¦ To jest ul. Długa 5.
pl|Dr hab. inż. Kowalski i prof. Nowak. ¦ On jest tu.
pl|W 1990 r. Potem był w m. st. Warszawie.
pl|Zob. s. 5, rys. 2, rozdz. III. ¦ Koniec.
ru|Это было в 1990 г. в г. Москве, см. рис. 2 на с. 5.
ru|А. С. Пушкин родился в 1799 г. ¦ Он поэт.
ru|Купил яблоки, груши и т. д. ¦ Потом ушёл.
ru|Т. е. Москва, т. к. Россия. ¦ Да.
ru|Дом стоит на ул. Ленина, д. 5, кв. 3. ¦ Это он.
ru|Цена 5 тыс. руб. ¦ Это много.
ru|«Иди!» — сказал он. ¦ Она ушла.
ru|Проф. Иванов и акад. Петров. ¦ Они тут.
uk|Див. рис. 2 на с. 5. ¦ Це так.
uk|Тарас Г. Шевченко народився в м. Моринці. ¦ Він поет.
cs|Např. Praha, tj. Česko. ¦ To je ul. Dlouhá č. 5.
cs|Ing. Novák a JUDr. Svoboda. ¦ Viz str. 5, obr. 2.
cs|Dne 5. května a 2. Svoboda? ¦ Karel IV. Lucemburský.
cs|To byl prst. ¦ A vlk. ¦ On šel.
sv|T.ex. Stockholm, bl.a. Lund, d.v.s. Sverige. ¦ Det är bra.
sv|Se s. 5, fig. 2. ¦ Kl. 5 gick han.
tr|Dr. Ayşe ve Prof. Dr. Ali geldi. ¦ Onlar iyi.
tr|Bu 2. Dünya Savaşı ve II. Abdülhamit. ¦ Bu doğru.
tr|Bkz. s. 5, şek. 2. ¦ Atatürk Cad. No. 5. ¦ Evet.
el|Πού πας; ¦ Πάω σπίτι. ¦ Βλ. σελ. 5, π.χ. Αθήνα.
el|Ο κ. Παπαδόπουλος και ο Γ. Σεφέρης. ¦ Αυτός είναι.
ja|「もう行くよ…。」と彼は言った。
ja|「もう行くよ。」と彼は言った。¦そして去った。
ja|「行こう。早く。」¦彼は立った。
ja|これはペンです。¦それは何？¦本だ！¦そう。
ja|「えっ？」と驚いた。¦「はい。」¦「いいえ。」
ja|Yahoo!ニュースを見た。¦楽しい。
ja|「けいおん！」の曲です。¦いい。
ja|彼は「行く。来る。」って言った。
ja|(本当だ。)とてもいい。
zh|他说：“你好。”然后走了。¦再见！
zh|“你好。我走了。”他说。¦好。
zh|「你好。」他說。¦再見。
zh|你好!¦我是谁?¦再见
zh|价格是3.14元。¦他……走了。¦好吗？！¦好
zh|《你好。中国》是书。¦好。
zh|“走吧。”“好。”
zh|他问：“真的吗？”我说：“是的！”
ko|그는 "가자."라고 말했다.
ko|그는 "가자." 라고 말했다. ¦ 나는 "싫어!" 하고 말했다.
ko|난 가. ¦ 그래. ¦ 왜? ¦ 응.
ko|“정말?”이라고 물었다. ¦ 그는 웃었다.
hi|यह एक वाक्य है। ¦ यह दूसरा है॥ ¦ तीसरा।
hi|डॉ. शर्मा और श्री. वर्मा आए। ¦ वे गए।
hi|ए. पी. जे. अब्दुल कलाम। ¦ हाँ।
ar|هذا كتاب. ¦ ما هذا؟ ¦ نعم
ar|د. أحمد و أ.د. محمد هنا. ¦ نعم.
km|ខ្ញុំទៅផ្សារ។ ¦ អ្នកទៅណា?
km|មានផ្លែប៉ោម ចេក ។ល។ ¦ ខ្ញុំទៅ។¦អ្នកទៅ។
bo|ང་ཁྲོམ་ལ་འགྲོ་གི་ཡིན། ¦ ཁྱེད་རང་ག་པར་འགྲོ་གི་ཡིན།
bo|བཀྲ་ཤིས་བདེ་ལེགས།། ¦ ང་འགྲོ། །
my|မင်္ဂလာပါ။ ¦ နေကောင်းလား။
ur|یہ کتاب ہے۔ ¦ وہ قلم ہے۔¦یہ کیا ہے؟
ka|გამარჯობა. ¦ როგორ ხარ? ¦ კარგად.
hy|Բարեւ։ ¦ Ինչպե՞ս ես։
am|ሰላም። ¦ እንዴት ነህ?
th|สวัสดีครับ ผมชื่อปีเตอร์ ไปไหน? ¦ ไปตลาด
he|ד. כהן הגיע. ¦ הוא כאן.
da|F.eks. København, bl.a. Aarhus. ¦ Den 5. Maj kom han. ¦ Det er godt.
nb|Se s. 5, kap. 2. ¦ Kl. 5 gikk han.
fi|Esim. Helsinki, ks. s. 5. ¦ Se on hyvä.
hu|Pl. Budapest, ld. 5. oldal. ¦ Az jó. ¦ II. Rákóczi Ferenc élt.
ro|De ex. București, str. Lungă nr. 5. ¦ El este bine.
vi|TP. Hồ Chí Minh và GS. Nguyễn. ¦ Anh ấy tốt.
id|Bpk. Budi, Jl. Merdeka No. 5. ¦ Dia baik.
deu_Latn|Am 3. Mai kam er. ¦ Das war z. B. gut.
"""


@pytest.mark.parametrize("line", _TEXTS.strip().split("\n"))
def test_sentences_end_where_they_should(line: str) -> None:
    language, _, marked = line.partition("|")
    text = marked.replace("¦ ", "").replace("¦", "")
    found = [piece.text for piece in cut(text, language, SplitSentences.ON) if piece.is_segment]
    assert found == [sentence.strip() for sentence in marked.split("¦")]
