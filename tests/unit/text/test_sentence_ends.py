"""Sentences of many languages: abbreviations, ordinals, quotations, marks of scripts; `¦` is where they end."""

import pytest

from service.domain.translation import SplitSentences
from service.text.sentences import pieces

_TEXTS = {
    "en": """
The box weighs approx. 5 kg. ¦ Read chap. VI of the book. ¦ Then sleep. ¦ We watched Jeopardy! is what she said.
Yahoo! Inc. was sold. ¦ It is gone. ¦ He met J. R. R. Tolkien. ¦ They talked. ¦ George W. Bush was president.
See Fig. 3 and Tab. 4 in No. 5. ¦ No. ¦ I don't want to. ¦ It was cats vs. Dogs at noon. ¦ Hm… ¦ Yes… no.
Many animals, e.g. Lions, sleep. ¦ Apple Inc. was founded in 1976. ¦ It is big. ¦ It opens at 9 a.m. ¦ Then we go.
He lives in St. Louis. ¦ She lives on Main St. ¦ They meet. ¦ It is 5 p.m. ¦ The shop closes. ¦ Really?! ¦ Yes.
At 5 p.m. Eastern time it closes. ¦ Wait... ¦ What? ¦ Well... maybe. ¦ He said "Go." ¦ Then he left. ¦ Wait ! ¦ Now.
"Go!" he said. ¦ It is 3.14. ¦ See http://a.b/c.html. ¦ Done. ¦ (It is open.) ¦ Go in. ¦ I like it. ¦ it is good.
The U.S. President spoke. ¦ He lives in the U.S. ¦ They don't. ¦ Dr. and Mrs. Smith et al. were there.
On Jan. 5 and Sept. 12 it rained. ¦ In May. ¦ He came. ¦ It is on p. 5, pp. 6-8, vol. IX, sec. 2, ch. 4.
hello. ¦ how are you? ¦ fine! ¦ really
Hello! ¦ how are you? ¦ fine
So do I. ¦ Then we left. ¦ He got vitamin C. ¦ It helped. ¦ The bag weighs 5 kg. ¦ It is heavy.
He has a Ph.D. in physics. ¦ She has an M.D. ¦ They work. ¦ Smith Jr. and Sons Ltd. won. ¦ E.g. this. ¦ I.e. that.
Lt. Col. Jones of the U.S. Army came. ¦ We left. ¦ Use the app. ¦ Click OK. ¦ Open a new tab. ¦ Peter did.
I said no. ¦ Peter said yes. ¦ He sat in the sun. ¦ May came. ¦ Is it 5? ¦ 6 people think so. ¦ 7 do not.
It ended.[1] ¦ Then came peace.²  ¦ Later war. ¦ Call System.Text.Json. ¦ It parses. ¦ Node.js is fine.
The report (see fig. 2. Also app. B) is long. ¦ Read it. ¦ Mt. Everest is 8,849 m. ¦ It is tall.
Version 2.0. ¦ Released today. ¦ He was born ca. 1850 and d. 1900. ¦ Elvis, a.k.a. The King, sang.
The price is approx. USD 5 million, i.e. EUR 4 million. ¦ Ask Mr. Brown, Ms. Green or Prof. White.
Washington, D.C. is big. ¦ We moved to Washington, D.C. ¦ Then home. ¦ Thanks! ¦ 😀 Great. ¦ 'Stop!' ¦ The man ran.
This is C++. ¦ That is C#. ¦ OK? ¦ Rev. King met Gov. Brown and Sen. Paul. ¦ All left. ¦ We met on Mon. 5 Dec. 2020.
Sales rose 5% vs. Q2. ¦ Costs fell. ¦ She works for Acme Corp. in Ohio. ¦ He works for Foo Co. ¦ They are rich.
The art. ¦ The act. ¦ The sun. ¦ Turn left on 5th Ave. and go. ¦ He got it from Prof. Dr. Dr. h.c. Meier.
See Sec. 2, Eq. 5 and App. B. ¦ The rest is in Ch. 3. ¦ Warner Bros. Pictures made it. ¦ We saw it in Nov. 2020.
See op. cit. p. 5 and ibid. p. 6. ¦ Gen. Lee, Sgt. Pepper and Pres. Lincoln. ¦ All dead.
Ft. Worth is in Tex. near Dallas. ¦ It costs $5. ¦ That is cheap. ¦ I am 5 ft. tall. ¦ You are 6 ft. 2 in. tall.
He works at Yahoo! and she works at Google. ¦ Good. ¦ Have you read Who's Afraid of Virginia Woolf? by Albee?
"Are you sure?" he asked. ¦ "Yes!" she said. ¦ They left. ¦ He said, “Stop it! Now!” and left. ¦ Good.
It was (really!) good. ¦ Yes. ¦ The file is at C:\\a.txt. ¦ Open it. ¦ Use v. 2.0 or ver. 3.1. ¦ Done.
Visit www.example.com. ¦ Mail me@example.com. ¦ Thanks. ¦ Roe v. Wade was decided. ¦ It was 1973.
Martin Luther King Jr. Day is in January. ¦ She has a B.A. in art. ¦ He has none. ¦ Est. 1990. ¦ We sell things.
We, i.e. Tom and I, e.g. In Rome, went. ¦ The temp. is 5 deg. C. ¦ The max. is 9. ¦ Dr. No is a film. ¦ It is old.
Mr. & Mrs. Smith et al. ¦ They left. ¦ A. A. Milne wrote it. ¦ C. S. Lewis did not. ¦ What?? ¦ No!!! ¦ Why?! ¦ OK...
He asked "Why?". ¦ She left. ¦ Sgt. Peppers' Lonely Hearts. ¦ iPhone sales rose.
Sales rose 5.5 pct. in Q1. ¦ Costs did not. ¦ This is the .NET version. ¦ He left. ¦ “Where to?” ¦ I asked.
""",
    "de": """
Die 3. Auflage erschien am 5. Mai. ¦ Sie ist neu. ¦ Er war der 2. Mann. ¦ Sie war die 1. Frau.
Das ist z. B. Wien, d. h. Österreich. ¦ Ja. ¦ Das ist z.B. Die Zeit. ¦ Es war 1990. ¦ Dann kam 1991. ¦ Peter lachte.
Dr. med. Müller und Prof. Dr. Meier kamen. ¦ Sie gingen. ¦ Ludwig XIV. Bourbon lebte. ¦ Heinrich VIII. starb.
Er ist 25. ¦ Sie ist 30. ¦ Er kaufte Äpfel, Birnen usw. ¦ Dann ging er. ¦ Müller & Co. KG und die Meier GmbH.
Siehe S. 5, Abb. 3, Bd. 2, Kap. 4 u. a. Orte. ¦ Er sagte: „Geh weg.“ ¦ Dann ging er. ¦ Joh. Seb. Bach? ¦ J. S. Bach!
„Geh weg!“, sagte er. ¦ »Komm!« sagte sie. ¦ Im 19. Jh. war das anders. ¦ Am 24. Dezember ist Heiligabend.
Nr. 5 lebt. ¦ Die Str. ist lang. ¦ Vgl. § 5 Abs. 2 Nr. 3 BGB. ¦ Sie wohnt in der Bahnhofstr. 5. ¦ Er nicht.
Der 100. Besucher kam. ¦ Der Bus fährt um 8. ¦ Wir warten. ¦ Das kostet ca. 5 Mio. Euro bzw. 6 Mrd. Dollar.
Er lebte von 50 v. Chr. bis 20 n. Chr. ¦ Dann starb er. ¦ Bitte bis 31. 12. 2020 zahlen. ¦ Danke!
Der 1. FC Köln gewann. ¦ Das 2. Spiel war gut. ¦ Inh. Max Mustermann, geb. Schmidt, verh. Meier
Frau Dipl.-Ing. Huber, z. Hd. Herrn Maier
Er ging um 17 Uhr. ¦ Um 18 Uhr kam er. ¦ Die LED. ¦ Sie leuchtet. ¦ Das ist der Test. ¦ Hier ist es.
Siehe S. 12 ff. ¦ Dort steht es. ¦ Vom 5. bis 7. Mai. ¦ Am 3.10. ¦ Wir feiern. ¦ Art. 5 Abs. 2 S. 1 GG. ¦ Das gilt.
Hrsg. v. Meier, Bd. II, 3. Aufl., S. 5. ¦ Öffnungszeiten: Mo. bis Fr. 9 Uhr, Sa. 10 Uhr. ¦ So. geschlossen.
Das Unternehmen, gegr. 1990, hat seinen Sitz in St. Gallen. ¦ Die 2. Bundesliga und die 5. Klasse. ¦ Der 3. Weg.
Bspw. Berlin, insb. Mitte, evtl. auch Köln. ¦ Mal sehen. ¦ Die Sitzung beginnt um 8.30 Uhr. ¦ Ende gegen 10.
Tel. 030/123, Fax. 456. ¦ Bitte anrufen. ¦ Frau Prof. Dr. h. c. mult. Meier sprach. ¦ Danach ging sie.
Das Haus (erb. 1900) steht in Frankfurt a. M. ¦ Es ist alt. ¦ Mind. 5 Std., max. 8 Std. ¦ Das reicht.
Goethe (geb. 1749, gest. 1832) war Dichter. ¦ Es gibt Rot, Grün u. a. Farben, u. v. m. ¦ Das ist schön.
Er fragte: „Wo?“ ¦ Sie sagte: „Da.“ ¦ Gut. ¦ Sie kamen zu zweit bzw. Zu dritt.
""",
    "fr": """
J. Dupont et Mlle Durand sont là. ¦ Ils parlent. ¦ M. Dupont habite av. de la République. ¦ Il est là.
Voir p. 5, fig. 2, art. 3 et chap. IV. ¦ Fin. ¦ Il dit « Viens ! » ¦ Puis il part. ¦ Louis XIV. ¦ Il était roi.
« Viens ! » dit-il. ¦ Elle vint. ¦ En 50 av. J.-C. Rome était grande. ¦ Mme. Martin et Me. Petit. ¦ L'homme est là.
Par ex. Paris, c.-à-d. La capitale, etc. ¦ Voilà. ¦ Quoi ?! ¦ Non… ¦ Si. ¦ Né en 1990 env. à St. Malo. ¦ Il vit.
Le Dr. Martin et le Pr. Petit. ¦ C'est tout. ¦ Le n° 5, 3e éd., t. II, chap. 4. ¦ Voilà.
MM. Durand et Petit, c.-à-d. nous. ¦ Oui. ¦ Art. 5 du code. ¦ L'art. 6 aussi.
Il habite bd. Voltaire. ¦ Elle, pl. Bellecour. ¦ C'est loin. ¦ « Où ? » demanda-t-il. ¦ « Là. » ¦ Il partit.
P. Martin et J.-P. Durand. ¦ C. Petit.
""",
    "es": """
El Sr. Pérez y la Sra. Gómez viven en la Av. Central núm. 5. ¦ Están bien. ¦ ¿Qué pasa? ¦ ¡Nada! ¦ Bien.
EE. UU. es grande. ¦ Véase pág. 5 y fig. 2. ¦ Por ej. Madrid. ¦ P. ej. Barcelona. ¦ Ud. puede ir. ¦ Vd. también.
Nació en 50 a. C. Roma era grande. ¦ D. Juan y Dña. Ana, Sres. de Gómez. ¦ Viven aquí. ¦ Vive en EE.UU. ¦ Es feliz.
El art. 5, cap. II, vol. 3, págs. 5-6. ¦ Fin. ¦ «Vete», dijo. ¦ «¡No!» ¦ Se fue. ¦ Aprox. 5 km, máx. 10. ¦ Nada más.
""",
    "it": """
Vedi pag. 5 e fig. 2. ¦ Grazie. ¦ Il sig. Rossi e la dott.ssa Bianchi. ¦ Il dott. Verdi è qui.
Nel 50 a.C. Roma era grande. ¦ L'uomo c'è. ¦ La Fiat S.p.A. di Torino. ¦ Ecco. ¦ Pane, vino, ecc. ¦ Poi basta.
Via Roma n. 5, cap. III, art. 7. ¦ Fine. ¦ S. Marco e S. Pietro. ¦ Il prof. Rossi e l'avv. Neri.
L'art. 5, c. 2, lett. a. ¦ Fine. ¦ «Vai!» disse. ¦ «No.» ¦ Andò.
""",
    "pt": """
O Sr. Silva mora na av. Paulista, n. 7. ¦ Ele é bom. ¦ A Dra. Costa e o Prof. Lima. ¦ Por ex. Lisboa.
Veja a pág. 5, cap. 3. ¦ Obrigado! ¦ O Exmo. Sr. Dr. João mora na R. Augusta, n.º 5. ¦ Bem.
Nasceu em 50 a.C. em Roma. ¦ Morreu.
""",
    "nl": """
Bijv. Amsterdam, d.w.z. Nederland. ¦ Dat is het. ¦ Dhr. Jansen en mevr. De Vries, blz. 5. ¦ Ja.
Drs. P. Bakker woont in St. Anna. ¦ Hij is thuis. ¦ Hij woont a.d. Rijn, o.a. in Arnhem. ¦ Mooi.
Prof. dr. ir. J. de Vries en mr. P. van Dam. ¦ Zij zijn er.
""",
    "pl": """
Np. Warszawa, tzn. Polska. ¦ To jest ul. Długa 5. ¦ W 1990 r. ¦ Potem był w m. st. Warszawie.
Dr hab. inż. Kowalski i prof. Nowak. ¦ On jest tu. ¦ Zob. s. 5, rys. 2, rozdz. III. ¦ Koniec.
Kupił jabłka itd. ¦ Potem wyszedł. ¦ Ks. Jan, św. Piotr, al. Jana Pawła II. ¦ To on.
Żył w XIX w. Polska była inna. ¦ A. Mickiewicz i J. Słowacki. ¦ Oni pisali.
""",
    "ru": """
Это было в 1990 г. в г. Москве, см. рис. 2 на с. 5. ¦ А. С. Пушкин родился в 1799 г. ¦ Он поэт.
Купил яблоки, груши и т. д. ¦ Потом ушёл. ¦ Т. е. Москва, т. к. Россия. ¦ Да. ¦ Цена 5 тыс. руб. ¦ Это много.
Дом стоит на ул. Ленина, д. 5, кв. 3. ¦ Это он. ¦ «Иди!» — сказал он. ¦ Она ушла. ¦ См. гл. 5, ст. 2, п. 3. ¦ Всё.
Проф. Иванов и акад. Петров. ¦ Они тут. ¦ Пушкин, Гоголь и др. ¦ Потом Толстой. ¦ 10 млн. рублей, 5 кг. ¦ Это много.
В XIX в. Россия была иной. ¦ В 2000 г. Москва росла. ¦ А.С. Пушкин и Л. Н. Толстой. ¦ Они писали.
«Где?» — спросил он. ¦ «Там!» ¦ Он ушёл.
""",
    "uk": """
Див. рис. 2 на с. 5. ¦ Це так. ¦ Тарас Г. Шевченко народився в м. Моринці. ¦ Він поет.
Яблука, груші і т. ін. ¦ Потім пішов.
""",
    "cs": """
Např. Praha, tj. Česko. ¦ To je ul. Dlouhá č. 5. ¦ Ing. Novák a JUDr. Svoboda. ¦ Viz str. 5, obr. 2.
Dne 5. května a 2. Svoboda? ¦ Karel IV. Lucemburský. ¦ To byl prst. ¦ A vlk. ¦ On šel.
Narozen 5. 12. 1990 v Brně. ¦ Žije.
""",
    "sv": """
T.ex. Stockholm, bl.a. Lund, d.v.s. Sverige. ¦ Det är bra. ¦ Se s. 5, fig. 2. ¦ Kl. 5 gick han.
Han heter J. Svensson m.fl. ¦ De bor här. ¦ Kl. 10.30 f.m. kom hon. ¦ Hon gick.
""",
    "tr": """
Dr. Ayşe ve Prof. Dr. Ali geldi. ¦ Onlar iyi. ¦ Bu 2. Dünya Savaşı ve II. Abdülhamit. ¦ Bu doğru.
Bkz. s. 5, şek. 2. ¦ Atatürk Cad. No. 5. ¦ Evet. ¦ Elma, armut vb. ¦ Sonra gitti. ¦ M.Ö. 5. yüzyılda. ¦ Sn. Ali Bey.
""",
    "el": """
Πού πας; ¦ Πάω σπίτι. ¦ Βλ. σελ. 5, π.χ. Αθήνα. ¦ Ο κ. Παπαδόπουλος και ο Γ. Σεφέρης. ¦ Αυτός είναι.
Ο Δρ. Ν. Παπάς, κ.ά. ¦ Αυτός είπε: «Ναι.» ¦ Ωραία. ¦ Το 50 π.Χ. η Ρώμη. ¦ Βλ. κεφ. 3.
""",
    "ja": """
「もう行くよ…。」と彼は言った。¦「もう行くよ。」と彼は言った。¦そして去った。¦「行こう。早く。」¦彼は立った。
これはペンです。¦それは何？¦本だ！¦そう。¦「えっ？」と驚いた。¦「はい。」¦「いいえ。」
Yahoo!ニュースを見た。¦楽しい。¦「けいおん！」の曲です。¦いい。¦彼は「行く。来る。」って言った。
(本当だ。)とてもいい。¦彼は「はい。」と答えた。¦私は「いいえ！」と言った。¦『行くな！』と叫んだ。¦だが彼は行った。
（これは注です。読んでください。）本文です。¦終わり。¦本当？！¦すごい！！¦ああ……そうか。
３．１４は円周率です。¦そうです。¦“行く。”と彼は言った。¦そうか。¦「彼は『行く。』と言った。」と聞いた。¦うん。
""",
    "zh": """
他说：“你好。”然后走了。¦再见！¦“你好。我走了。”他说。¦好。¦「你好。」他說。¦再見。¦你好!¦我是谁?¦再见
价格是3.14元。¦他……走了。¦好吗？！¦好
《你好。中国》是书。¦好。¦“走吧。”¦“好。”¦“真的吗？”他问道。¦“是的。”
他问：“真的吗？”我说：“是的！”
他喊道：“快跑！”大家都跑了。¦真的。¦他说“好。”，然后走了。¦再见。¦（他走了。）我留下。¦好。
我用的是Node.js。¦版本是3.1。¦好。¦他说：‘你好。’然后走了。¦好。
""",
    "ko": """
그는 "가자."라고 말했다. ¦ 그는 "가자." 라고 말했다. ¦ 나는 "싫어!" 하고 말했다. ¦ 난 가. ¦ 그래. ¦ 왜? ¦ 응.
“정말?”이라고 물었다. ¦ 그는 웃었다. ¦ "안녕!"이라고 했다. ¦ 그는 갔다. ¦ 그는 '가자.'라고 말했다. ¦ 끝.
「가자.」라고 했다. ¦ 끝. ¦ 3.14는 원주율이다. ¦ 그렇다.
""",
    "hi": """
यह एक वाक्य है। ¦ यह दूसरा है॥ ¦ तीसरा। ¦ डॉ. शर्मा और श्री. वर्मा आए। ¦ वे गए। ¦ ए. पी. जे. अब्दुल कलाम। ¦ हाँ।
श्रीमती. गांधी और पं. नेहरू। ¦ वे आए। ¦ क्या? ¦ हाँ! ¦ उसने कहा, "जाओ। अभी।" ¦ फिर गया।
""",
    "ar": """
هذا كتاب. ¦ ما هذا؟ ¦ نعم
د. أحمد و أ.د. محمد هنا. ¦ نعم. ¦ ص. 5 و ج. 2. ¦ نعم! ¦ لا؟
""",
    "km": """
ខ្ញុំទៅផ្សារ។ ¦ អ្នកទៅណា? ¦ មានផ្លែប៉ោម ចេក ។ល។ ¦ ខ្ញុំទៅ។¦អ្នកទៅ។ ¦ សួស្តី! ¦ អ្នកសុខសប្បាយទេ? ¦ ខ្ញុំសុខសប្បាយ៕
""",
    "bo": """
ང་ཁྲོམ་ལ་འགྲོ་གི་ཡིན། ¦ ཁྱེད་རང་ག་པར་འགྲོ་གི་ཡིན། ¦ བཀྲ་ཤིས་བདེ་ལེགས།། ¦ ང་འགྲོ། ། ¦ འདི་དེབ་རེད།¦དེ་ག་རེ་རེད།
བཀྲ་ཤིས་བདེ་ལེགས། ། ¦ ང་འགྲོ།
""",
    "my": "မင်္ဂလာပါ။ ¦ နေကောင်းလား။ ¦ သူလာသည်။ ¦ ငါသွားသည်။",
    "ur": "یہ کتاب ہے۔ ¦ وہ قلم ہے۔¦یہ کیا ہے؟",
    "ka": "გამარჯობა. ¦ როგორ ხარ? ¦ კარგად.",
    "hy": "Բարեւ։ ¦ Ինչպե՞ս ես։",
    "am": "ሰላም። ¦ እንዴት ነህ? ¦ ይህ ነው።¦ያ ነው፧¦አዎ።",
    "th": "สวัสดีครับ ผมชื่อปีเตอร์ ไปไหน? ¦ ไปตลาด",
    "he": "ד. כהן הגיע. ¦ הוא כאן.",
    "da": """
F.eks. København, bl.a. Aarhus. ¦ Den 5. Maj kom han. ¦ Det er godt.
Han bor på Nørregade nr. 5, 2. sal. ¦ Det er godt.
""",
    "nb": "Se s. 5, kap. 2. ¦ Kl. 5 gikk han.",
    "fi": "Esim. Helsinki, ks. s. 5. ¦ Se on hyvä.",
    "hu": "Pl. Budapest, ld. 5. oldal. ¦ Az jó. ¦ II. Rákóczi Ferenc élt.",
    "ro": "De ex. București, str. Lungă nr. 5. ¦ El este bine.",
    "vi": "TP. Hồ Chí Minh và GS. Nguyễn. ¦ Anh ấy tốt.",
    "id": "Bpk. Budi, Jl. Merdeka No. 5. ¦ Dia baik.",
    "deu_Latn": "Am 3. Mai kam er. ¦ Das war z. B. gut.",
    "fa": "این کتاب است. ¦ آن چیست؟ ¦ بله!",
    "lo": "ສະບາຍດີ. ¦ ເຈົ້າສະບາຍດີບໍ?",
    "eng_Latn": "See approx. 5. ¦ Good.",
    "rus_Cyrl": "См. рис. 2. ¦ Да.",
    "de-AT": "Das ist z. B. Wien. ¦ Ja.",
    "xx": "One. ¦ Two.",
    "en-US": "See fig. 5. ¦ Good.",
    "zh-Hant": "他說：「你好。」然後走了。¦再見！",
}


@pytest.mark.parametrize("language", _TEXTS)
def test_sentences_end_where_they_should(language: str) -> None:
    for marked in _TEXTS[language].strip().split("\n"):
        text = marked.replace("¦ ", "").replace("¦", "")
        found = [piece.text for piece in pieces(text, language, SplitSentences.ON) if piece.is_segment]
        assert found == [sentence.strip() for sentence in marked.split("¦")]
