"""Language codes."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.languages import (
    ServedLanguages,
    canonical,
    display_name,
    folded,
    is_well_formed,
    language_of,
    script_of,
)

# The languages of NLLB-200 that share a language with another one, or have another code in BCP 47, and some others.
NLLB = (
    "ace_Arab ace_Latn aka_Latn als_Latn amh_Ethi arb_Arab arb_Latn arz_Arab ary_Arab azb_Arab azj_Latn bjn_Arab "
    "bjn_Latn bod_Tibt bos_Latn ces_Latn ckb_Arab cym_Latn dan_Latn deu_Latn dik_Latn ell_Grek eng_Latn est_Latn "
    "fra_Latn fuv_Latn gaz_Latn grn_Latn heb_Hebr hin_Deva hrv_Latn hye_Armn ind_Latn jpn_Jpan kas_Arab kas_Deva "
    "khk_Cyrl kmr_Latn knc_Arab knc_Latn kor_Hang lvs_Latn min_Arab min_Latn mni_Beng nld_Latn nno_Latn nob_Latn "
    "npi_Deva nso_Latn ory_Orya pan_Guru pbt_Arab pes_Arab plt_Latn por_Latn prs_Arab quy_Latn ron_Latn rus_Cyrl "
    "sat_Beng slk_Latn srp_Cyrl swh_Latn taq_Latn taq_Tfng tgl_Latn tuk_Latn twi_Latn tzm_Tfng uig_Arab urd_Arab "
    "uzn_Latn ydd_Hebr yue_Hant zho_Hans zho_Hant zsm_Latn zul_Latn"
)
M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
MARIAN = "zle pt_br pt cmn_Hans cmn_Hant yue_Hant deu nob nno srp_Latn srp_Cyrl hbs_Cyrl zlm_Latn jpn es_AR"
FAMILIES = [codes.split() for codes in (NLLB, M2M100, MARIAN)]
KNOWN = sorted({code for family in FAMILIES for code in family})
OTHERS = "pt-BR pt-PT zh-TW zh-HK zh-CN zh-Hant-TW sr-Latn sr-RS sr-ME iw en-GB de-CH-1996 ks bs hr"
CALLERS = [*KNOWN, *OTHERS.split()]


def test_which_codes_are_well_formed() -> None:
    assert all(map(is_well_formed, CALLERS))
    others = ("", "e", "12", "en-", "-en", "en--us", "d!", "en us", "en\n", "a" * 9, "é", "en-" + "a-" * 40)
    assert not any(map(is_well_formed, others))


@pytest.mark.parametrize(
    ("asked", "served", "found"),
    [
        ("DE", "en de", "de"),
        ("de-AT", "en de", "de"),
        ("de_at", "de-CH de-AT de", "de-AT"),
        ("de-CH-1996", "de-AT de-CH", "de-CH"),
        ("de", "de-CH de-AT", "de-AT"),  # by name, where nothing else decides
        ("deu", "en de", "de"),
        ("ger", "en de", "de"),
        ("en_US", "eng_Latn deu_Latn", "eng_Latn"),
        ("eng_Latn", "en de", "en"),
        ("en", "eng_Latn en", "en"),
        ("en-AU", "en-GB en-US", "en-GB"),
        ("pt-BR", "pt pt-PT", "pt"),
        ("pt-BR", "pt pt_br", "pt_br"),
        ("pt", "pt-PT pt_br", "pt_br"),
        ("pt-AO", "pt-BR pt-PT", "pt-PT"),
        ("es-MX", "es es-419", "es-419"),
        ("zh-CN", "zho_Hans zho_Hant", "zho_Hans"),
        ("zh", "zho_Hans zho_Hant", "zho_Hans"),
        ("zh-TW", "zho_Hans zho_Hant", "zho_Hant"),
        ("zh-Hant", "zh-CN zh-TW", "zh-TW"),
        ("zh-cmn-Hant", "cmn_Hans cmn_Hant", "cmn_Hant"),
        ("zh", "zho_Hant", "zho_Hant"),  # nothing determines the script
        ("zh-TW", "zho_Hans", None),
        ("zh-TW", "zh", None),
        ("zh-yue", "zho_Hant yue_Hant", "yue_Hant"),
        ("yue", "zho_Hant", None),
        ("sr", "srp_Cyrl srp_Latn", "srp_Cyrl"),
        ("sr", "srp_Latn", "srp_Latn"),
        ("sr-Latn", "srp_Cyrl", None),
        ("sr-Latn", "sr", None),
        ("sr-Cyrl", "sr", "sr"),
        ("sr-ME", "srp_Cyrl srp_Latn", "srp_Latn"),  # in Montenegro
        ("sh", "srp_Cyrl srp_Latn", "srp_Latn"),
        ("iw", "he ar", "he"),
        ("he", "iw", "iw"),
        ("nb", "no da", "no"),
        ("no", "nob_Latn nno_Latn", "nob_Latn"),
        ("nn", "nob_Latn no", None),
        ("tl", "fil", "fil"),
        ("ko-KR", "kor_Hang", "kor_Hang"),
        ("ja-JP", "jpn_Jpan", "jpn_Jpan"),
        ("ar-EG", "arb_Arab arz_Arab", "arb_Arab"),
        ("arz", "arb_Arab", None),
        ("fa", "prs_Arab pes_Arab", "pes_Arab"),
        ("fa-AF", "prs_Arab pes_Arab", "prs_Arab"),
        ("tw", "aka_Latn twi_Latn", "twi_Latn"),
        ("ak", "aka_Latn twi_Latn", "aka_Latn"),
        ("sq", "als_Latn", "als_Latn"),
        ("mo", "ro", "ro"),
        ("hi", "ur", None),
        ("da", "no", None),
        ("bs", "hr sr", None),
        ("emk", "mnk", None),  # both are Manding languages
        ("zle", "zle", "zle"),
        ("ru", "zle", None),
        ("en-x-foo", "en", "en"),
        ("x-foo", "en", None),
        ("und", "en", None),
        ("abcdefgh", "en", None),
    ],
)
def test_which_served_code_is_meant(asked: str, served: str, found: str | None) -> None:
    matches = ServedLanguages(served.split()).find(asked)
    assert (matches[0].code if matches else None) == found


@pytest.mark.parametrize(
    ("asked", "served", "nearest"),
    [("sr-Latn", "en sr", "sr"), ("zh-TW", "en zh", "zh"), ("da", "en no", "no"), ("hi", "ur en", None)],
)
def test_who_asks_in_vain_is_pointed_to_what_is_near(asked: str, served: str, nearest: str | None) -> None:
    assert ServedLanguages(served.split()).nearest(asked) == nearest


@given(st.data())
def test_case_and_separators_never_matter(data: st.DataObject) -> None:
    family, code = data.draw(st.sampled_from(FAMILIES)), data.draw(st.sampled_from(CALLERS))
    shouted = [data.draw(st.sampled_from([str.upper, str.lower]))(letter) for letter in code]
    variant = "".join(data.draw(st.sampled_from("-_")) if letter in "-_" else letter for letter in shouted)
    assert ServedLanguages(family).find(variant) == ServedLanguages(family).find(code)


@given(st.from_regex(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,2}", fullmatch=True), st.sampled_from(FAMILIES))
def test_the_same_code_always_wins(code: str, family: list[str]) -> None:
    assert is_well_formed(code)
    served = ServedLanguages([*family, code])
    for variant in (code.upper(), code.lower(), code.swapcase(), code.replace("-", "_")):
        first = served.find(variant)[0]
        assert (folded(first.code), first.distance) == (folded(code), 0)


@given(st.sampled_from(CALLERS), st.permutations(KNOWN))
@settings(max_examples=50)
def test_the_order_of_the_served_codes_does_not_matter(code: str, served: list[str]) -> None:
    assert ServedLanguages(served).find(code) == ServedLanguages(KNOWN).find(code)


def test_never_another_language_nor_another_script_than_was_said() -> None:
    groups = [{"nb", "no"}, {"ak", "tw"}]  # the same language under two names
    for code, family in itertools.product(CALLERS, FAMILIES):
        for found in ServedLanguages(family).find(code):
            languages = {language_of(code), language_of(found.code)}
            assert len(languages) == 1 or languages in groups, (code, found)
            if "_" in code or "-" in code:
                assert script_of(found.code) in (script_of(code), ""), (code, found)


@pytest.mark.parametrize("family", FAMILIES)
def test_callers_are_told_of_each_code_in_a_spelling_that_leads_back_to_it(family: list[str]) -> None:
    served = ServedLanguages(family)
    spellings = served.spellings()
    assert sorted(spellings) == sorted(family)
    assert len(set(spellings.values())) == len(family)
    for code, spelling in spellings.items():
        assert served.find(spelling)[0].code == code


@pytest.mark.parametrize(
    ("code", "spelling"),
    [
        ("eng_Latn", "en"),
        ("zho_Hans", "zh"),
        ("zho_Hant", "zh-Hant"),
        ("zh-CN", "zh-CN"),
        ("zh-hant-tw", "zh-TW"),
        ("pt_br", "pt-BR"),
        ("SR_latn", "sr-Latn"),
        ("srp_Cyrl", "sr"),
        ("arb_Arab", "ar"),
        ("nob_Latn", "nb"),
        ("kor_Hang", "ko"),
        ("iw", "he"),
        ("zle", "zle"),
        ("tzm_Tfng", "tzm-Tfng"),
        ("no code", "no code"),
    ],
)
def test_the_canonical_spelling(code: str, spelling: str) -> None:
    assert canonical(code) == spelling
    assert canonical(spelling) == spelling


@pytest.mark.parametrize(
    ("code", "in_language", "name"),
    [
        ("de", "en", "German"),
        ("deu_Latn", "de", "Deutsch"),
        ("zho_Hant", "de", "Chinesisch (Traditionell)"),
        ("pt-BR", "fr-CA", "portugais (Brésil)"),
        ("de", "zh-TW", "德文"),
        ("de", "zh", "德语"),
        ("de", "no code!", "German"),
        ("de", "qaa", "German"),
        ("javascript", "en", "javascript"),
        ("python", "de", "python"),
    ],
)
def test_names_of_languages(code: str, in_language: str, name: str) -> None:
    assert display_name(code, in_language) == name


def test_strangers_codes_leave_nothing_behind() -> None:
    from langcodes import Language, language_distance

    def num_kept() -> int:
        caches = (Language._PARSE_CACHE, Language._INSTANCES, language_distance._DISTANCE_CACHE)
        return sum(len(cache) for cache in caches)

    served = ServedLanguages(["en", "de"])
    before = num_kept()
    for number in range(26**3):
        first, second, third = (chr(65 + number // 26**place % 26) for place in range(3))
        code = f"en-{first}{second}-x-{third}"
        served.find(code)
        canonical(code)
    assert 200 < num_kept() - before < 350  # that is the number of regions
