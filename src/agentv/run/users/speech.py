"""Speech acts in the messages of a conversation: requests, answers, refusals and farewells.

The rules know the words of a few languages. A message in another language has words that they do not know, and then
they decide nothing: a check that cannot decide raises no alarm.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.matching.spoken import foreign_numbers, word_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+(?:'\w+)?")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u0060\u00b4\u02bc", "'"))
_SENTENCE = re.compile(r"[^.!?\n\uff1f\u061f]*(?:[.!?\uff1f\u061f]+(?=\s|$)|\n|$|[.!?](?=\S))")
QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]")
_NOT_SAID = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|https?://\S+|\(.*?\)(?=\s*$)")
"""Quotations and addresses, whose question marks ask nothing."""
QUESTION_MARKS = "?\uff1f\u061f"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(text.split())


_FUNCTION_WORDS = word_set(
    "a an the and or but if of to in on at by for from with as is are was were be been am do does did have has had "
    "can could will would shall should may might must i you he she it we they me him her us them my your his its our "
    "their this that these those there here what which who whom whose when where why how not no so too very just also "
    "then than about into over under up down out off again more most some any all each one ones please der die das "
    "den dem ein eine einen und oder ist sind war ich sie er es wir ihr mein ihre ihren auf mit für von zu wie was "
    "wer wann wo welche welcher welches wohin möchten können haben soll soll le la les un une des de du et ou est "
    "sont je vous il elle nous mon ma votre vos quel quelle quels quelles quand comment combien où qui que pour avec "
    "dans sur au aux el los las una y o es son yo usted su sus cuál cuándo cómo cuánto dónde qué quién para con en il "
    "lo gli e sono lei suo sua quale quando come quanto dove chi che per di o os as um uma qual quanto onde het een "
    "en of is zijn wat wanneer hoe welke waar u uw"
)
"""Words without content, in the languages whose questions are understood."""
_REQUEST = re.compile(
    r"\b(?:please|kindly)\s+(?:confirm|provide|tell|give|share|choose|select|pick|enter|state|specify|name|type"
    r"|let\s+me\s+know|reply|describe|repeat|verify)\b|\b(?:i|we)\s*(?:'ll|'d|\s+will|\s+would)?\s+(?:also\s+"
    r"|still\s+|just\s+|only\s+|now\s+)*(?:need|require)\s+(?:to\s+know|your|the|an?|his|her|their)\b"
    r"|\blet\s+me\s+know\s+(?:which|what|when|where|whether|how|your)\b|\bplease\s+(?:choose|pick)\b",
    re.IGNORECASE,
)
"""Requests for an answer that are no questions."""
_REQUEST_FOR_LATER = re.compile(
    r"\b(?:by\s+\w+ing|via|link|if|once|later|after|until|when\s+you|as\s+soon|next\s+time|online|by\s+post)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\bhow\s+(?:was|were)\s+(?:your|the)\b|\bwho\s+(?:doesn't|wouldn't)\b|\bwhy\s+(?:wait|not)\b|\bisn't\s+(?:that"
    r"|it)\s+(?:great|nice|lovely|wonderful|amazing)\b|^\W*you\s+know\s+what\b|\b(?:is|are|was|were|has|have|did|do"
    r"|does)\s+(?:your\s+(?:problem|issue|question|request)s?|everything|all|i|we|it|that|this"
    r"|you)\b.{0,30}\b(?:solve[ds]?|resolved?|answer(?:ed)?|clear|fixed|sorted|settled|understand|understood"
    r"|make\s+sense)\b|\b(?:hear|heard)\s+(?:of|about)\s+us\b|^\W*(?:got|understood|clear|all\s+clear|all\s+good"
    r"|make\s+sense)\b[^?]{0,12}\?|\b(?:any|some)thing\s+(?:else|more|further|other)|\bwhat\s+else\b|\belse\s*\?"
    r"|\bany\s*thing\s+(?:i|we)\s+can|\b(?:other|more|further|additional|any|open|remaining)\s+(?:questions?|issues?"
    r"|concerns?|requests?|wish(?:es)?|help)|\b(?:that|this|it)\s+(?:be\s+)?(?:all|everything)\b"
    r"|\ball\s+for\s+(?:today|now)|\b(?:help|assist|do)\s+(?:you\s+)?(?:with\s+)?(?:(?:any|some)thing|today|further"
    r"|more\s+for\s+you)|\b(?:how|what)\s+(?:else\s+)?(?:can|may)\s+(?:i|we)\s+(?:help|do\s+for)"
    r"|\bfurther\s+(?:assistance|help|support)|\b(?:was|is|did|does|has)\s+(?:this|that|it|everything|all|i"
    r"|my\s+\w+)\b.{0,40}\b(?:help(?:ed|ful)?|clear|answer(?:ed)?|useful|sense|solved?|worked|work|resolved?)\b"
    r"|\b(?:rate|rating|feedback|survey|(?:an?|short|quick|leave|write|your)\s+review|newsletter|satisfied)\b"
    r"|\bhow\s+are\s+you|\b(?:and|what\s+about)\s+you\s*\?|\bclose\s+(?:the|this)\s+(?:ticket|case|chat)"
    r"|\bnoch\s+(?:etwas|was|fragen|weitere)|\bsonst\s+noch|\bweitere\s+(?:fragen|hilfe)|\bweiterhelfen"
    r"|\bautre\s+(?:chose|question)|\bautres\s+questions|\bvous\s+aider|\balgo\s+m[áa]s|\balguna\s+otra"
    r"|\botra\s+(?:cosa|pregunta)|\bmais\s+alguma|\balgo\s+mais|\boutra\s+coisa|\bqualcos'?\s?altro"
    r"|\baltr[aoe]\s+(?:domand|cos)|\bnog\s+(?:iets|vragen)|\bverder\s+helpen|\bnågot\s+(?:mer|annat)",
    re.IGNORECASE,
)
"""Questions that a conversation may end with."""
_INSTRUCTION = re.compile(
    r"^(?:please|kindly|try|then|now|first|next|restart|reinstall|reset|open|click|press|use|set|run|turn|change"
    r"|update)\b",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\b(?:did|does|has|is)\s+(?:that|this|it|the\s+\w+)\b.{0,20}\b(?:solve|fix|work|help|gone|better)", re.IGNORECASE
)
"""Questions for the result of what the agent told the user to do: no courtesies."""
_TAG = re.compile(
    r"(?:^|[\s,])(?:ok|okay|alright|all right|right|deal|agreed|correct|yes|fine)\s*\?+\s*$", re.IGNORECASE
)
_ASKS = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|or|o|welche[rsnm]?|wann|wo|wie|wer|was|wohin|oder"
    r"|quel(?:le)?s?|quand|comment|combien|où|ou|qui|cu[áa]l|cu[áa]ndo|c[óo]mo|cu[áa]nt[oa]s?|d[óo]nde|qu[ée]"
    r"|qui[ée]n|quale|quando|qual|quais|quant[oaie]s?|onde|dove|wat|welke?|wanneer|hoeveel|waar)\b|^\W*(?:come|como"
    r"|che|chi|cosa|hoe)\b",
    re.IGNORECASE,
)
"""Words of a question that asks for more than a yes or no."""
_PROPOSAL = re.compile(
    r"\b(?:shall|should)\s+(?:i|we)\b|\b(?:would|do)\s+you\s+(?:like|want)\b|\bwant\s+me\b|\b(?:may|can|could)\s+(?:i"
    r"|we)\b|\b(?:would|will|does|do|is|are|can)\s.{0,60}\b(?:work|suit|ok|okay|fine|good|convenient|possible"
    r"|all\s+right|alright|enough|acceptable|in\s+order)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:how|what)\s+(?:does|do|would|is|about)\s+(?:that|this|it|you\s+(?:think|say|feel))\b", re.IGNORECASE
)
"""Words of a question for approval."""
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|have|has|had|can|could|will|would|shall|should|may|ist|sind|haben|hat|können"
    r"|möchten|est|avez|êtes|tiene|es|ha|è)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d|\b(?:\w+day|today|tonight|tomorrow|morning|afternoon|evening|noon|week)s?\b", re.IGNORECASE)
_ACCEPTED = re.compile(
    r"\b(?:perfect|great|good|fine|lovely|ok|okay|k|wonderful|excellent|works?|deal|agreed|super|brilliant|alright"
    r"|all\s+right|cool|fantastic|awesome|nice|gladly|gerne|passt|parfait|perfecto|perfetto|thanks|thank\s+you)\b",
    re.IGNORECASE,
)
_APPROVED = re.compile(
    r"\bthat(?:'s| is| works| would be| will be| sounds)(?: \w+)? (?:fine|ok|okay|good|great|perfect|all right)\b",
    re.IGNORECASE,
)
_PARTICLE = re.compile(
    r"(?:^|[.!?,;:-]\s*|\b(?:oh|well|so|hm+|um|and|thanks|thank you|ok|okay)\s+)(?:yes|yeah|yep|yup|ye|y|no|nope|nah"
    r"|sure|absolutely|definitely|of course|certainly|please do|please don't|go ahead|do it|do that|do so|why not"
    r"|go for it|by all means|gladly|volontiers|volentieri|graag|gerne?|not\b|neither|either|both|none|whichever"
    r"|whatever|any|all of|(?:i|we|they|he|she|it) (?:do|did|does|am|are|is|was|have|has|can|will|would|don't|didn't"
    r"|can't|haven't|won't)(?=\s*(?:$|[.!,;]))|that's right|ja|jawohl|nein|doch|nee|oui|non|si|sí|sì|não|sim|nej|tak"
    r"|nie|i'd rather|rather|later)(?=$|[\s.!?,;:-])(?!\s+(?:more|further|other)\s+(?:questions?|requests?|help)"
    r"|\s+(?:problem|worries|wait))",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(
    r"^(?:from|in|at|on|with|by|near|via|through|under|next\s+to|to)\s+(?!you\b|that\s+note|the\s+point)|^(?:you|it"
    r"|that|this|they|he|she)\s+(?:have|has|did|do|does|is|are|was|were|can|will)(?:n't|\s+not)?\s*(?:$|[.,!;])",
    re.IGNORECASE,
)
"""Answers without a verb of their own: "from a friend", "you have"."""
_RESULT = re.compile(r"\b(?:works?|worked|working|fixed|gone|back\s+up|green|online)\b", re.IGNORECASE)
"""Words of the result of an attempt."""
_TAG_WORDS = 3
_CONFIRMS = re.compile(
    r"\bthat'?s\s+(?:it|right|correct|fine|the\s+one)\b|\ball\s+(?:correct|good|fine)\b", re.IGNORECASE
)
_GIVEN_UP = re.compile(
    r"\b(?:too\s+long|giv(?:e|ing)\s+up|going\s+nowhere|waste\s+of|useless|ridiculous|enough\s+of\s+this)\b",
    re.IGNORECASE,
)
"""Words of somebody who leaves without an answer, and says why."""
_SEVERAL = re.compile(r"(?<=[?])\s+|,?\s+(?:and|und|et|y|e|en)\s+|,\s+")
"""Ends of the parts of a question that ask for one thing each."""
_MEASURED = re.compile(
    r"^(?:and\s+|so\s+)?(?:on\s+)?(?:which|what)\s+day\b|\b(?:what|which)(?:'s|\s+is|\s+was)?\s+(?:your|the)\s+(?:\w+\s+){0,2}"
    r"(?:number|code|id|phone|zip|postcode|pin|e-?mail|date|birthday|budget|weight|height|age)\b|"
    r"\bhow\s+(?:many|much)\b|^(?:on\s+)?(?:when|which\s+date|what\s+(?:date|time))\b|\b(?:until|since|from)\s+when\b"
    r"|\bwann\b|\bwie\s+viele?\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:\w+day|today|tonight|tomorrow|morning|afternoon|evening|noon|midnight|weeks?|months?|years?|asap|soon\w*"
    r"|now|immediately|whenever|flexible|any\s?time|later|next|any|all|long|alone|just\s+me|myself|(?:jan|febr)uary"
    r"|march|april|may|june|july|august|\w+ember|october|summer|winter|spring|autumn|christmas|easter|morgen|heute"
    r"|\w+tag|\w+woche|demain|mañana|domani)\b",
    re.IGNORECASE,
)
"""Words that answer a question for a time or a number."""
_APPROVING = re.compile(r"[\U0001f44d\U0001f44c\u2705\u2714]|^\W*done\b", re.IGNORECASE)
"""Pictures and words that say yes."""
_THANKS = re.compile(
    r"\b(?:(?:many\s+)?thanks?(?:\s+(?:you|a\s+lot|so\s+much|very\s+much|again|a\s+million))*|thx|cheers"
    r"|(?:good\s*)?bye|ciao|ok(?:ay)?|take\s+care|now|then|all\s+right|alright|you(?:'ve)?|very|super|been|helpful)\b",
    re.IGNORECASE,
)
"""Words that answer no question."""
_HOW_MANY = re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE)
_DRAWN_OUT = re.compile(r"([a-z])\1{2,}", re.IGNORECASE)
"""Letters that are written several times for effect."""
_SETTLED = re.compile(
    r"\b(?:that|this|it)\s+(?:all\s+|just\s+|really\s+|totally\s+)?\w+(?:s|ed)\s+(?:it|that|this|everything|all|(?:my|the)"
    r"\s+(?:\w+\s+)?(?:problem|question|issue|matter|thing)s?)\b|\b(?:i|we)(?:'m|\s+am|'re|\s+are)\s+closing\b.{0,20}"
    r"|\b(?:good|great|nice|glad)\s+to\s+(?:know|hear|see)\s+(?:that|they|it|you|someone|somebody|this)\b[^.!?;]*"
    r"|\b(?:dann\s+|damit\s+|so\s+)?(?:ist\s+)?(?:ja\s+|jetzt\s+)?(?:alles|tout|todo|tutto|tudo)\s+(?:ist\s+|est\s+|está\s+|è\s+)?"
    r"(?:geklärt|klar|erledigt|réglé|clair|claro|resuelto|listo|chiaro|risolto)\b",
    re.IGNORECASE,
)
"""Statements that all is done."""
_OR = re.compile(r"\b(?:or|oder|ou|of|o)\b", re.IGNORECASE)
_OPTIONS = re.compile(r"\b(?:or|and|oder|und|ou|et|o|y|e|of|en)\b|[,;/]|\d\D+\d", re.IGNORECASE)
"""Signs of a list, from which a question may ask for one thing."""
_ALTERNATIVES = re.compile(
    r"\b(?:or|oder|ou)\s+(?!not\b|so\b|older\b|more\b|less\b|later\b|earlier\b|above\b|younger\b|no\b|nicht\b)",
    re.IGNORECASE,
)
"""A question that asks to choose between what it names."""
_CHOSEN = re.compile(
    r"n't\b|\b(?:not|no|nope|never|depends|idk|dunno|nicht|kein\w*|pas|non|niet|geen|não|first|second|third|last|latter|former|either|both|neither|none|any|whichever|whatever|all\s+of|other|another|rather"
    r"|prefer|only|just|keep|do|go|take(?!\s+care)|use|leave|make|you\s+(?:choose|decide)|\w+er\s+one|\w+est|erste[rns]?|zweite[rns]?"
    r"|beide[s]?|egal|lieber)\b",
    re.IGNORECASE,
)
"""Words that choose without naming the thing."""
MAX_CHOICE = 2
"""Words of content of an answer that names a thing at once."""
_OF_RESULT = re.compile(
    r"\b(?:it|that|this|everything|all|problem|issue|error|still|now|see|works?|there|correct|right|okay|ok|fine|ready|agree"
    r"|acceptable|enough)\b|^\W*\w+\W*$",
    re.IGNORECASE,
)
"""Words of a question for a result or for consent, which a word of praise answers."""
_PREFERENCE = re.compile(r"\b(?:want|like|prefer|suits?|works?|best|choose|convenient|take)\b", re.IGNORECASE)
"""Words of a question whose answer may be what the agent named before."""
_TOKEN = re.compile(r"\w+(?:[.:,']\w+)*")
MIN_FORM = 3
"""Letters that the forms of a word have in common."""
_DECISION = re.compile(
    r"\b(?:shall|should|may|would|want|accept|agree|sure|prefer|wish|like|need|tell|give|send|provide|share|confirm"
    r"|name|possible|before|möchten|wollen|soll|darf|voulez|souhaitez|dois|quiere|desea|vuole|there\s+an?"
    r"|have\s+(?:the|your|an?)|can\s+i|could\s+i|do\s+you\s+(?:know|remember|have))\b",
    re.IGNORECASE,
)
"""Words of a question for a decision or a value."""
_LEAVING = re.compile(
    r"\b(?:i|we)(?:'ll|\s+will)\s+(?:leave\s+(?:it|you)|let\s+you\s+go|be\s+off|get\s+going)\b[^.!?;]*|\b(?:(?:i"
    r"|we)(?:'m|\s+am|'re|\s+are)\s+)?(?:now\s+|just\s+)?(?:off|going\s+back|going|heading|back)\s+(?:to|out|home"
    r"|for)\b(?!\s+(?:pay|take|use|have|keep|go\s+with|choose))[^.!?;]*|\b(?:(?:i|we)(?:'ll|\s+will)\s+)?(?:see"
    r"|c)\s+(?:you|u|ya)\b[^.!?,;]*|\blook(?:ing)?\s+forward\b[^.!?;]*|\bcan'?t\s+wait\b[^.!?;]*|\b(?:thanks"
    r"|thank\s+you|thx|cheers|grateful|appreciate(?:d)?)\b[^.!?,;]*\b(?:for|that\s+you|your|how)\b[^.!?,;]*|\b(?:have"
    r"|enjoy)\s+(?:a|an|the|your)\b[^.!?,;]*|\btalk\s+(?:to\s+you\s+)?(?:soon|later)|\bbye\b[^.!?,;]*|\b(?:bis|à"
    r"|hasta|até|tot)\s+\w+|\bi\s+have\s+(?:everything|all|what)\b[^.!?,;]*|\b(?:i|we)(?:'m|\s+am|'re"
    r"|\s+are)\s+(?:so\s+|very\s+|really\s+|quite\s+)?(?:happy|glad|satisfied|pleased|relieved|done|all\s+set"
    r"|good)\b[^.!?,;]*|\bno\s+(?:more|further|other)\s+\w+|\byou(?:'ve|\s+have|'re|\s+are|\s+were|\s+really"
    r"|\s+just)?\s+(?:been|saved?|made|helped|rock|solved|fixed|sorted|did|were|so|very|really|too|a|an|the"
    r"|all)\b[^.!?,;]*|\b(?:that|this)(?:'s|\s+(?:is|was|answers?|answered|will\s+do|does\s+it|helps?|helped|covers?"
    r"|works))\b[^.!?,;]*|\b(?:everything|all|it)(?:'s|\s+is|\s+was|\s+were|\s+has\s+been)\s+(?:all|everything|very"
    r"|so|really|just|what|great|good|perfect|it|clear|settled|sorted|solved|done|helpful|exactly|more|super|enough"
    r"|kind)\b[^.!?,;]*|\b(?:merci|danke|dank|gracias|grazie|obrigad[oa])\b[^.!?,;]*|\b(?:sie\s+haben|du\s+hast"
    r"|vous\s+m'avez|vous\s+avez|me\s+ha|mi\s+ha|u\s+hebt|u\s+heeft)\b[^.!?,;]*\b(?:geholfen|aidée?|ayudado"
    r"|aiutat[oa]|geholpen)\b|\b(?:five|5|ten|10)[\s-]*(?:out\s+of\s+(?:five|ten|5|10)\b|stars?)[^.!?,;]*|\b10/10\b"
    r"|\bi(?:'ve)?\s+(?:got|have|had)\s+(?:what|everything|all)\s+i\s+\w+(?:\s+for)?|\bnever\s+been\s+\w+"
    r"|\bcouldn't\s+be\s+\w+",
    re.IGNORECASE,
)
"""Parts of a message that only end a conversation, with the words that belong to them."""
_PUT_OFF = re.compile(
    r"\b(?:i|we)(?:'ll| will|'d| would| have to| need to| must| should)\b(?!\s+(?:be\s+(?:there|back)"
    r"|like\s+to\s+thank|thank|wait|see\s+you|look\s+forward|take\s+care|love\s+it|enjoy))|\b(?:don't|do not|doesn't"
    r"|not)\s+(?:know|sure|want|need)|\bno\s+(?:idea|clue)|\blater\s+on\b|\bthink\s+(?:about|it\s+over)"
    r"|\bget\s+back\b|\bnever\s+mind\b|\bchanged\s+my\s+mind\b|\bforget\s+it\b",
    re.IGNORECASE,
)
_COURTESY_WORDS = word_set(
    "excited solves closing catch stuff news ja bei ihnen euch schnell rasch flott wirklich vite vraiment rápido "
    "realmente davvero "
    "thank thanks thankyou thx thnx ty tysm ta cheers much many lot lots bunch million ever really truly again "
    "appreciate appreciated grateful bye goodbye farewell later ciao cya night day evening morning afternoon weekend "
    "week nice good great lovely wonderful excellent perfect perfectly fantastic brilliant awesome amazing super cool "
    "sweet neat superb terrific marvellous marvelous splendid fab fabulous ok okay okey k kk alright right well fine "
    "happy glad pleased satisfied relieved best wishes regards luck care take see soon you're you've been kind "
    "helpful help helped helping support service assistance information info advice patience time effort everything "
    "settled sorted solved done clear cleared set problem question questions needed need wanted want know known wait "
    "forward hope hear got it that's this's all that's everything's i'm i've i'll we're we've it's let's know sounds "
    "sound looks look makes sense works wow oh ah aha haha lol yay hey dear sir madam friend mate buddy dude guys "
    "team everyone now today tonight then bit quite such side part end ends fun stars star five-star feel feeling "
    "better happier happiest best smile smiling rest enjoy have had having being fast quick quickly response reply "
    "explaining explanation explained understanding understood understand arranging arranged sorting clearing noted "
    "covers covered leave leaving go going off head doctor organising organizing phew whew yum yummy yippee hooray "
    "hurray relief answers anyway anyways indeed though truly heaps loads tons sincerely kindly highly extremely "
    "saved holiday finished finish complete completed conversation chat here's end ended concludes conclude pleasure "
    "job work efficient easy simple smooth auskunft antwort rückmeldung unterstützung mühe beratung réponse "
    "renseignements información atención informazioni danke dankeschön vielen dank schön schönen tag noch gut alles "
    "klar super perfekt toll prima tschüss wiedersehen wiederhören auf hilfe beste grüße abend wochenende war das "
    "wunderbar hervorragend bestens freundlich merci beaucoup bonne journée soirée au revoir parfait génial super "
    "très bien c'est tout aide gracias muchas adiós hasta luego perfecto genial buen buenas día tarde todo ayuda muy "
    "amable grazie mille arrivederci perfetto buona giornata tutto aiuto obrigado obrigada muito tchau perfeito dank "
    "bedankt wel fijne dag tot ziens tack så mycket hej då obliged chuffed thrilled glad delighted impressed gracious "
    "generous splendid stellar outstanding exceptional flawless impeccable superb ace top notch first-rate legend "
    "lifesaver hero angel gem saint genius pal love darling folks lads regards respectfully warmly blessings blessed "
    "bless godspeed toodles adieu later laters peace cheerio ttyl gtg tata news came treated treat experience service "
    "review rating highly recommended whole great-ful helper handled handling swift swiftly promptly prompt speedy "
    "painless stress-free hassle-free seamless professional courteous friendly polite herzlich herzlichen liebe grüße "
    "gruß mfg vielmals tausend klasse spitze großartig ausgezeichnet fantastisch genau richtig geholfen freut freue "
    "mich schönes schöne bis dann bald morgen später ade servus pfiat gruess ciao nett lieb excellent excellente "
    "formidable impeccable magnifique nickel top chouette agréable cordialement remercie infiniment bientôt prochaine "
    "bon week-end salut gentil gentille service rapide efficace estupendo estupenda excelente fenomenal maravilloso "
    "magnífico fantástico encantado saludos cordial atención amabilidad nos vemos vale bueno bien feliz noche noches "
    "servicio rápido eficaz agradezco mil ottimo ottima eccellente fantastico magnifico splendido benissimo gentile "
    "gentilissimo gentilezza saluti cordiali presto dopo serata ringrazio servizio veloce ótimo ótima excelente "
    "fantástico maravilhoso até logo breve abraço cumprimentos atenciosamente simpatia ajuda boa bom tarde noite dia "
    "agradeço serviço hartelijk hartelijke prima geweldig uitstekend fantastisch mooi fijn fijne groeten groet "
    "vriendelijke dag doei tot straks later gauw goed geholpen hulp"
)
"""Words of thanks, praise and farewell, and of the statement that all is done."""
_DECLINED = re.compile(
    r"n't\b|\b(?:too\s+long|giv(?:e|ing)\s+up|going\s+nowhere|waste\s+of|useless|ridiculous|enough\s+of\s+this)\b"
    r"|\b(?:nope|nah|idk|dunno|dont|doesnt|didnt|cant|couldnt|wouldnt|havent|hasnt|isnt|wasnt|not|no(?!\.|\s*\d)|none|never"
    r"|nobody|nothing|nowhere|neither|nor|without|cannot|unknown|unsure|uncertain|forgot|forgotten|forget|lost|gone"
    r"|missing|misplaced|unreadable|illegible|hidden|later|ages|idea|clue|beats\s+me|(?:look|find|check|ask|search"
    r"|dig|figure)(?:ing|ed)?|have\s+to|need\s+to|rather|private|secret|confidential|depends|guess|wish"
    r"|hard\s+to\s+(?:say|tell)|you\s+tell\s+me|wait|(?:a|one)\s+(?:moment|second|minute)|sec|hold\s+on|hang\s+on"
    r"|let\s+me|we(?:'ll|\s+will)\s+see|why|somewhere|somebody|someone|some(?!\s+time)|whatever|sorry|afraid|yet|still|handles|entered|knows?|nicht"
    r"|kein\w*|nie|weiß|leider|später|pas|aucune?|jamais|sais|désolée?|tampoco|sé|sin|ningun[oa]?|não|nem|sei|senza"
    r"|nessun\w*|non|né|saprei|ricordo|recuerdo|acuerdo|lembro|ni\s+idea|nem\s+ideia|ignore|souviens|geen|niet|weet"
    r"|inte|ingen|vet|nie|nei)\b",
    re.IGNORECASE,
)
"""Words of somebody who does not tell a value, or not yet."""

_LACKING = re.compile(
    r"(?:n't|\b(?:not|no|never|cannot|dont|cant|nicht|kein\w*|pas|non?|n\u00e3o|niet|geen))\b.{0,20}\b(?:know|have"
    r"|remember|recall|idea|clue|sure|find|found|see|show|say|tell|got|given?|wei\u00df|habe|sais|s\u00e9|so|sei|weet)\b"
    r"|\b(?:idk|dunno|unknown|unsure|forgot\w*|no\s+idea|sorry|afraid)\b",
    re.IGNORECASE,
)
"""Words of somebody who does not have what he was asked for."""

USER_ACTS = (
    r"(?:never|always|already|not|just|also|only|even|now|then|be|been|had|have|paid|pay|sent|send|tr(?:y|ied)|read"
    r"|seen|see|heard|hear|written|write|call|called|wait|waited|received|got|get|buy|bought|told|tell|ask|asked|sign"
    r"|signed|fill|filled|upload|uploaded|used?|follow|followed|lost|found|looked?|check|checked|attach|attached|open"
    r"|opened|restart|restarted|done|do|noticed|visit|visited|order|ordered|book|booked|think|thought|come|came|take"
    r"|taken|need|go|gone to|bring|brought|leave|left|contact|contacted|talk|talked|keep|kept|stay|forward|give|given"
    r"|put|pick|picked|enter|entered|click|clicked|choose|chosen|accept|recommend|mention|mentioned|explain|explained"
    r"|reply|replied|answer|decide|follow|print|add|added|say|said|like|want|love|loved|miss|report|reported|spoken"
    r"|speak|start|switch|switched|set|install|installed|changed?)\b"
)
"""Acts of users, which tell nothing about the role."""
AGENT_THINGS = word_set(
    "help time patience day evening weekend message mail email answer reply question questions name support service "
    "team website site page app system shop store advice hotline colleague colleagues kindness effort understanding "
    "offer prices price opening hours office company side end way records file files database"
    " terms invoice letter technician driver courier instructions address friend link code number"
)
"""Things that a user calls "your" though the agent may do so too."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that begins with a whole word and ignores case; a blank in it is any white space."""
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w'])(?:{spaced})", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with one kind of apostrophe."""
    return text.translate(_APOSTROPHES)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(plain(text).casefold())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [part.strip() for part in _SENTENCE.findall(plain(text)) if part.strip()]


def without_quotations(text: str) -> str:
    """Return a text without the words that it quotes."""
    return QUOTED.sub(" ", plain(text))


def is_question(sentence: str) -> bool:
    """Return whether a sentence has a question mark."""
    return any(mark in sentence for mark in QUESTION_MARKS)


def questions(text: str) -> list[str]:
    """Return the questions of a text."""
    return [sentence for sentence in sentences(_NOT_SAID.sub(" ", plain(text))) if is_question(sentence)]


def open_requests(answer: str) -> list[str]:
    """Return the questions and requests of an agent's message that need an answer, without mere courtesies."""
    parts = sentences(_NOT_SAID.sub(" ", plain(answer)))
    if parts and not is_question(parts[-1]) and _is_farewell(parts[-1]):
        return []
    asked = [part for part in parts if is_question(part) or _is_request(part)]
    is_instructed = any(_INSTRUCTION.search(part) for part in parts)
    return [part for part in asked if not _COURTESY.search(part) or (is_instructed and _OUTCOME.search(part))]


def _is_request(sentence: str) -> bool:
    return _REQUEST.search(sentence) is not None and not _REQUEST_FOR_LATER.search(sentence)


def _is_farewell(sentence: str) -> bool:
    return bool(re.search(r"\b(?:bye|goodbye|see you|have a|take care|enjoy)\b", sentence, re.IGNORECASE))


def is_understood(sentence: str) -> bool:
    """Return whether a sentence has words of a language that the rules know."""
    found = words(sentence)
    return bool(found) and any(word in _FUNCTION_WORDS for word in found)


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry its content."""
    return {word for word in words(text) if word not in _FUNCTION_WORDS}


def is_answered(request: str, message: str, answer: str = "") -> bool:
    """Return whether a last message may answer a request: it does more than thank, repeat and say goodbye."""
    text = _DRAWN_OUT.sub(r"\1", plain(message).strip())
    said = _SETTLED.sub(" ", _LEAVING.sub(" ", text))
    new = _without_echo(said, request, answer) if _ASKS.search(request) or _is_status(request) else said
    is_echo, said = new != said, new
    if is_question(text) or _PARTICLE.search(text) or _FRAGMENT.search(text):
        return True
    if _ALTERNATIVES.search(request):
        return is_put_off(said) or _GIVEN_UP.search(text) is not None or _is_chosen(request, said)
    if _APPROVING.search(text) and not _ASKS.search(request):
        return True
    is_more = re.search(r"\d", said) is not None or any(_is_content(word) for word in words(said))
    if is_more or is_put_off(said) or _GIVEN_UP.search(text):
        return True
    if (content_words(said) - _COURTESY_WORDS) & content_words(request) or _is_confirmed(
        request, text, said, is_echo=is_echo
    ):
        return True
    return _is_proposal(request) and re.search(r"\w", text) is not None and _is_accepted(text)


def is_half_answered(requests: Sequence[str], message: str) -> bool:
    """Return whether a message takes up the first of several questions for a yes or no, and not the last one."""
    text = plain(message)
    first, last = requests[0], requests[-1]
    if len(requests) < 2 or any(_ASKS.search(request) for request in (first, last)):  # noqa: PLR2004 - several
        return False
    if is_question(text) or is_declined(text) or is_put_off(text) or len(_PARTICLE.findall(text)) > 1:
        return False
    return _takes_up(text, first) and not _takes_up(text, last)


def _takes_up(message: str, request: str) -> bool:
    """Return whether a message has a word of a request."""
    asked = content_words(request)
    return any(_is_heard(word, asked) for word in content_words(message) - _COURTESY_WORDS)


def _is_chosen(request: str, message: str) -> bool:
    """Return whether a message names a thing that a request asks to choose, or another one at once."""
    if _CHOSEN.search(message) or _takes_up(message, request):
        return True
    first = [word for word in words(re.split(r"[,;.!](?!\d)", message)[0]) if _is_content(word)]
    return 0 < len(first) <= MAX_CHOICE


def _is_content(word: str) -> bool:
    """Return whether a word is more than a courtesy."""
    plain_word = word.partition("'")[0]
    return not any(form in _COURTESY_WORDS or form in _FUNCTION_WORDS for form in (word, plain_word))


def _without_echo(said: str, request: str, answer: str) -> str:
    """Return a message without the words of the agent's statements, which are no answer to what it asks."""
    told = [part for part in sentences(answer) if part not in request and not is_question(part)]
    is_choice = _PREFERENCE.search(request) or _OPTIONS.search(" ".join(told))
    if not told or (is_choice and not _OR.search(request)):
        return said
    asked = {word for word in words(request) if not word.isdigit()}
    heard = {word for part in told for word in words(part)} - asked
    return _TOKEN.sub(lambda match: " " if _is_heard(match[0].casefold(), heard) else match[0], said)


def _is_heard(word: str, heard: Iterable[str]) -> bool:
    return any(
        word == other or (min(len(word), len(other)) >= MIN_FORM and (word.startswith(other) or other.startswith(word)))
        for other in heard
    )


def unanswered_part(request: str, message: str, answer: str = "") -> str | None:
    """Return the part of a request whose answer must have a number, a time or an address, if there is none."""
    parts = [part.strip() for part in _SEVERAL.split(request) if part.strip()]
    text = plain(message)
    if is_question(text) or is_declined(text) or is_put_off(text):
        return None
    text = _without_known_numbers(text, request, answer)
    if (
        re.search(r"[\d@]|\b[A-Z]{3,}\b", text)
        or any(word_numbers(text))
        or any(foreign_numbers(text))
        or _WHEN.search(text)
    ):
        return None
    return next((part for part in parts if _MEASURED.search(part)), None)


def _without_known_numbers(text: str, request: str, answer: str) -> str:
    """Return a message without the numbers of the agent's statements, if a request asks for a number of something."""
    told = " ".join(part for part in sentences(answer) if part not in request and not is_question(part))
    if not _HOW_MANY.search(request) or _OPTIONS.search(told):
        return text
    known = set(re.findall(r"\d+", told))
    return re.sub(r"\d+(?:st|nd|rd|th)?", lambda match: "" if match[0].rstrip("stndrh") in known else match[0], text)


def _is_confirmed(request: str, text: str, said: str, *, is_echo: bool) -> bool:
    """Return whether a message answers a question for a yes or no: it says more than thanks."""
    if _ASKS.search(request):
        return False
    if _CONFIRMS.search(text) and _is_status(request):
        return True
    is_short = len(words(request)) <= _TAG_WORDS
    if _RESULT.search(text) or (is_short and _ACCEPTED.search(_THANKS.sub(" ", text))):
        return True
    is_remark = is_echo and _OF_RESULT.search(request) is None
    return _is_status(request) and not is_remark and re.search(r"\w", _THANKS.sub(" ", said)) is not None


def _is_status(request: str) -> bool:
    """Return whether a question is for a yes or no about how things are, and not for a decision or a value."""
    return is_question(request) and not _DECISION.search(request)


def is_put_off(message: str) -> bool:
    """Return whether a message says that the answer comes later, or not at all."""
    return _PUT_OFF.search(message) is not None


def _is_accepted(text: str) -> bool:
    """Return whether a message approves of something, beyond thanks."""
    if _APPROVED.search(text):
        return True
    without = re.sub(
        r"\b(?:good\s+to\s+know|good\s*(?:bye|day|night|evening)|(?:a|very)\s+\w+\s+(?:day|one|evening|weekend))",
        " ",
        text,
        flags=re.IGNORECASE,
    )
    return any(
        match[0].casefold() not in ("thanks", "thank you") for match in _ACCEPTED.finditer(_LEAVING.sub(" ", without))
    )


def _is_proposal(request: str) -> bool:
    """Return whether a request proposes something that a word of approval accepts."""
    if _TAG.search(request) or _OPINION.search(request):
        return True
    if _ASKS.search(request):
        return False
    return bool(_PROPOSAL.search(request)) or (not _VERB.search(request) and bool(_TIME.search(request)))


def is_declined(message: str) -> bool:
    """Return whether a message has words of somebody who does not tell a value."""
    return _DECLINED.search(plain(message)) is not None


def is_lacking(message: str) -> bool:
    """Return whether a message says that its writer does not have what he was asked for."""
    return _LACKING.search(plain(message)) is not None


def contains(words_: Sequence[str], part: Sequence[str]) -> bool:
    """Return whether the words of a part follow each other in a text."""
    size = len(part)
    return any(list(words_[at : at + size]) == list(part) for at in range(len(words_) - size + 1))


def stems(tokens: Iterable[str]) -> set[str]:
    """Return the first letters of words, by which their forms are the same."""
    return {token[:5] for token in tokens}
